/* jump.h: functions of a library that are jumps to those of libptxemu_cuda.so, which has them all under names of its own. */
#ifndef PTXEMU_CUDA_JUMP_H
#define PTXEMU_CUDA_JUMP_H

#if defined __x86_64__
#define PX_JUMP_TO(target) "endbr64\n jmp *" target "@GOTPCREL(%rip)\n"
#elif defined __aarch64__
#define PX_JUMP_TO(target) "hint #34\n adrp x16, :got:" target "\n ldr x16, [x16, #:got_lo12:" target "]\n br x16\n"
#endif

/* Weak, as a library may have the function itself; and the reference, so that programs can be linked without looking for its target. */
#define PX_JUMP(name)                                                                                                     \
  __asm__(".pushsection .text\n .p2align 4\n .weak " #name ", ptxemu_core_" #name "\n .type " #name ", %function\n" #name \
          ":\n " PX_JUMP_TO("ptxemu_core_" #name) " .size " #name ", . - " #name "\n .popsection\n");

#endif
