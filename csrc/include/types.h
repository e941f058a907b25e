/* types.h: the codes of scalar types that JIT code and Python pass to the runtime. */
#ifndef PTXEMU_TYPES_H
#define PTXEMU_TYPES_H

#pragma GCC visibility push(default)
/* CDEF BEGIN */
enum {
  PE_TYPE_U8,
  PE_TYPE_S8,
  PE_TYPE_U16,
  PE_TYPE_S16,
  PE_TYPE_U32,
  PE_TYPE_S32,
  PE_TYPE_U64,
  PE_TYPE_S64,
  PE_TYPE_F16,
  PE_TYPE_BF16,
  PE_TYPE_F32,
  PE_TYPE_F64,
  PE_TYPE_F16X2,
  PE_TYPE_BF16X2,
  PE_TYPE_B16,
  PE_TYPE_B32,
  PE_TYPE_B64,
  PE_TYPE_B128,
  PE_TYPE_TF32,
  PE_TYPE_E4M3,
  PE_TYPE_E5M2,
  PE_TYPE_S4,
  PE_TYPE_U4,
  PE_TYPE_B1,
  PE_TYPE_E3M2,
  PE_TYPE_E2M3,
  PE_TYPE_E2M1
};
/* CDEF END */
#pragma GCC visibility pop

#endif
