"""Instructions among the lanes of a warp (PTX ISA, "Data Movement" and "Parallel Synchronization")."""

from __future__ import annotations

from ptxemu.isa.table import row
from ptxemu.isa.traits import traits

CHAPTER = "Parallel Synchronization and Communication Instructions"
MOVEMENT = "Data Movement and Conversion Instructions"
MISCELLANEOUS = "Miscellaneous Instructions"

row("shfl", "mode=up,down,bfly,idx type=b32", "d:type|q:pred?, a:type, b:b32, c:b32", ptx="3.0", sm=30,
    does="meets active, varying, carries a", flags="unsynced", chapter=MOVEMENT)  # fmt: skip
row("shfl", "sync mode=up,down,bfly,idx type=b32", "d:type|q:pred?, a:type, b:b32, c:b32, membermask:u32", ptx="6.0",
    sm=30, does="meets membermask, varying, carries a", chapter=MOVEMENT)  # fmt: skip

row("vote", "mode=all,any,uni type=pred", "d:pred, a:pred", ptx="1.2", sm=12, does="meets active, asks lanes, uniform",
    flags="unsynced", chapter=CHAPTER)  # fmt: skip
row("vote", "mode=ballot type=b32", "d:b32, a:pred", ptx="2.0", sm=20, does="meets active, asks lanes, uniform",
    flags="unsynced", chapter=CHAPTER)  # fmt: skip
row("vote", "sync mode=all,any,uni type=pred", "d:pred, a:pred, membermask:u32", ptx="6.0", sm=30,
    does="meets membermask, asks lanes, uniform", chapter=CHAPTER)  # fmt: skip
row("vote", "sync mode=ballot type=b32", "d:b32, a:pred, membermask:u32", ptx="6.0", sm=30,
    does="meets membermask, asks lanes, uniform", chapter=CHAPTER)  # fmt: skip

row("match", "mode=any sync type=b32,b64", "d:u32, a:type, membermask:u32", ptx="6.0", sm=70,
    does="meets membermask, asks lanes, varying", chapter=CHAPTER)  # fmt: skip
row("match", "mode=all sync type=b32,b64", "d:b32|q:pred?, a:type, membermask:u32", ptx="6.0", sm=70,
    does="meets membermask, asks lanes, varying", chapter=CHAPTER)  # fmt: skip

row("activemask", "type=b32", "d:type", ptx="6.2", sm=30, does="asks lanes, uniform", chapter=CHAPTER)
row("redux", "sync op=add,min,max type=u32,s32", "d:type, a:type, membermask:u32", ptx="7.0", sm=80,
    does="meets membermask, uniform", chapter=CHAPTER)  # fmt: skip
row("redux", "sync op=and,or,xor type=b32", "d:u32, a:u32, membermask:u32", ptx="7.0", sm=80,
    does="meets membermask, uniform", chapter=CHAPTER)  # fmt: skip
row("redux", "sync op=min,max abs? nan?=NaN type=f32", "d:type, a:type, membermask:u32", ptx="8.6", sm=100,
    does="meets membermask, uniform", flags="accelerated blackwell",
    chapter=CHAPTER)  # fmt: skip
row("elect", "sync", "d:u32|q:pred, membermask:u32", ptx="8.0", sm=90, does="meets membermask, varying", chapter=CHAPTER)
row("nanosleep", "type=u32", "a:u32", ptx="6.2", sm=70, does="waits time", chapter=MISCELLANEOUS)

traits("kept unsized:2 unsized:3", "shfl")
traits("unsized:pred", "vote")
traits("integer", "match")
traits("integer sized", "redux")
traits("sized functionless", "nanosleep")
