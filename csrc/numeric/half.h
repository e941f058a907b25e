/* half.h: 16-bit floats and their bits. */
#ifndef PTXEMU_HALF_H
#define PTXEMU_HALF_H
#include <stdint.h>

/* Rounding modes, as in pe_round. */
enum { PE_RN, PE_RZ, PE_RM, PE_RP };

uint16_t pe_half_from_double(double value, uint32_t mode);
uint16_t pe_bfloat_from_double(double value, uint32_t mode);
double pe_double_from_half(uint16_t bits);
double pe_double_from_bfloat(uint16_t bits);

/* The conversions that LLVM calls by compiler-rt's names.  A half or bfloat travels in the low bits of a float register. */
float pe_truncsfhf2(float value);
float pe_truncdfhf2(double value);
float pe_truncsfbf2(float value);
float pe_truncdfbf2(double value);
float pe_extendhfsf2(float half);

#endif
