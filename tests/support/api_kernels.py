"""Small PTX modules for the tests of the interfaces."""

HEAD = ".version 7.8\n.target sm_80\n.address_size 64\n"

# y[i] = a * x[i] + y[i]
SAXPY = (
    HEAD
    + """
.visible .entry saxpy(.param .u32 n, .param .f32 a, .param .u64 x, .param .u64 y)
{
  .reg .pred %p; .reg .b32 %r<5>; .reg .f32 %f<4>; .reg .b64 %rd<6>;
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
  mad.lo.s32 %r1, %r1, %r2, %r3;
  ld.param.u32 %r4, [n];
  setp.ge.u32 %p, %r1, %r4;
  @%p bra DONE;
  ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; ld.param.f32 %f1, [a];
  cvta.to.global.u64 %rd1, %rd1; cvta.to.global.u64 %rd2, %rd2;
  mul.wide.u32 %rd3, %r1, 4;
  add.u64 %rd4, %rd1, %rd3; add.u64 %rd5, %rd2, %rd3;
  ld.global.f32 %f2, [%rd4]; ld.global.f32 %f3, [%rd5];
  fma.rn.f32 %f3, %f1, %f2, %f3;
  st.global.f32 [%rd5], %f3;
DONE:
  ret;
}
"""
)

# The 8 bytes of a scalar of each size, stored one after the other.
SCALARS = (
    HEAD
    + """
.visible .entry scalars(.param .u64 out, .param .s8 a, .param .u16 b, .param .s32 c, .param .u32 d, .param .b32 e,
                        .param .f32 f, .param .f64 g, .param .s64 h)
{
  .reg .b32 %r<4>; .reg .b64 %rd<3>; .reg .b16 %h<3>;
  ld.param.u64 %rd1, [out];
  ld.param.s8 %h1, [a]; cvt.s64.s16 %rd2, %h1; st.global.u64 [%rd1], %rd2;
  ld.param.u16 %h1, [b]; cvt.u64.u16 %rd2, %h1; st.global.u64 [%rd1+8], %rd2;
  ld.param.s32 %r1, [c]; cvt.s64.s32 %rd2, %r1; st.global.u64 [%rd1+16], %rd2;
  ld.param.u32 %r1, [d]; cvt.u64.u32 %rd2, %r1; st.global.u64 [%rd1+24], %rd2;
  ld.param.b32 %r1, [e]; cvt.u64.u32 %rd2, %r1; st.global.u64 [%rd1+32], %rd2;
  ld.param.b32 %r1, [f]; cvt.u64.u32 %rd2, %r1; st.global.u64 [%rd1+40], %rd2;
  ld.param.b64 %rd2, [g]; st.global.u64 [%rd1+48], %rd2;
  ld.param.s64 %rd2, [h]; st.global.u64 [%rd1+56], %rd2;
  ret;
}
"""
)

# A struct { u32 index; f32 value; u64 where; } by value: where[index] = value.
STRUCT = (
    HEAD
    + """
.visible .entry poke(.param .align 8 .b8 p[16])
{
  .reg .b32 %r; .reg .f32 %f; .reg .b64 %rd<4>;
  ld.param.u32 %r, [p]; ld.param.f32 %f, [p+4]; ld.param.u64 %rd1, [p+8];
  mul.wide.u32 %rd2, %r, 4; add.u64 %rd3, %rd1, %rd2;
  st.global.f32 [%rd3], %f;
  ret;
}
"""
)

# counter counts launches; table is constant; next points at the second element of values.
VARIABLES = (
    HEAD
    + """
.global .u32 counter = 40;
.global .f32 values[4] = {1.0, 2.0, 3.0, 4.0};
.global .u64 next = values + 4;
.const .s16 table[3] = {-1, 0, 1};
.visible .entry step(.param .u64 out)
{
  .reg .b32 %r<3>; .reg .b64 %rd<3>; .reg .f32 %f; .reg .b16 %h;
  ld.param.u64 %rd1, [out];
  ld.global.u32 %r1, [counter]; add.u32 %r1, %r1, 1; st.global.u32 [counter], %r1;
  st.global.u32 [%rd1], %r1;
  ld.global.u64 %rd2, [next]; ld.global.f32 %f, [%rd2]; st.global.f32 [%rd1+4], %f;
  ld.const.s16 %h, [table]; cvt.s32.s16 %r2, %h; st.global.u32 [%rd1+8], %r2;
  ret;
}
"""
)

# Texel x of a surface, by handle and by name, plus one.
SURFACES = (
    HEAD
    + """
.global .surfref named;
.visible .entry by_handle(.param .u64 s)
{
  .reg .b32 %r<3>; .reg .b64 %rd;
  ld.param.u64 %rd, [s]; mov.u32 %r1, %tid.x; shl.b32 %r1, %r1, 2;
  suld.b.1d.b32.trap {%r2}, [%rd, {%r1}]; add.u32 %r2, %r2, 1; sust.b.1d.b32.trap [%rd, {%r1}], {%r2};
  ret;
}
.visible .entry by_name()
{
  .reg .b32 %r<3>;
  mov.u32 %r1, %tid.x; shl.b32 %r1, %r1, 2;
  suld.b.1d.b32.trap {%r2}, [named, {%r1}]; add.u32 %r2, %r2, 1; sust.b.1d.b32.trap [named, {%r1}], {%r2};
  ret;
}
.visible .entry by_param(.param .surfref ps)
{
  .reg .b32 %r<3>;
  mov.u32 %r1, %tid.x; shl.b32 %r1, %r1, 2;
  suld.b.1d.b32.trap {%r2}, [ps, {%r1}]; add.u32 %r2, %r2, 1; sust.b.1d.b32.trap [ps, {%r1}], {%r2};
  ret;
}
"""
)

ENDLESS = (
    HEAD
    + """
.visible .entry endless()
{
AGAIN:
  bra AGAIN;
}
"""
)

BOUNDED = (
    HEAD
    + """
.visible .entry small() .maxntid 64 { ret; }
.visible .entry exact() .reqntid 32, 2 { ret; }
.visible .entry big_shared() { .shared .b8 window[1024]; .reg .b32 %r; ld.shared.u32 %r, [window]; ret; }
"""
)

HELLO = (
    HEAD
    + """
.extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);
.global .align 1 .b8 text[7] = {104, 101, 108, 108, 111, 10, 0};
.visible .entry hello()
{
  .reg .b64 %rd<2>; .reg .b32 %r;
  mov.u64 %rd0, text; cvta.global.u64 %rd0, %rd0;
  { .param .b64 p0; .param .b64 p1; .param .b32 q;
    st.param.b64 [p0], %rd0; st.param.b64 [p1], 0;
    call.uni (q), vprintf, (p0, p1); ld.param.b32 %r, [q]; }
  ret;
}
"""
)

UNSUPPORTED = (
    HEAD
    + """
.visible .entry tensor(.param .u64 out)
{
  .reg .b64 %rd<2>;
  fabric.submit;
  ret;
}
"""
)

BROKEN = (
    HEAD
    + """
.visible .entry broken()
{
  .reg .b32 %r;
  add.u33 %r, %r, 1;
  mov.u32 %r, %missing;
  ret;
}
"""
)
