/* properties.h: cudaDeviceProp, which CUDA 13 laid out anew: BOTH fields in both versions, OLD in 12 only, NEW in 13 only.
 * A number is that of the attribute with the same value, 0: there is none.
 */
#ifndef PTXEMU_CUDA_PROPERTIES_H
#define PTXEMU_CUDA_PROPERTIES_H

#define PX_PROPERTIES(BOTH, OLD, NEW)                       \
  BOTH(char, name, [256], 0)                                \
  BOTH(char, uuid, [16], 0)                                 \
  BOTH(char, luid, [8], 0)                                  \
  BOTH(unsigned int, luidDeviceNodeMask, , 0)               \
  BOTH(size_t, totalGlobalMem, , 0)                         \
  BOTH(size_t, sharedMemPerBlock, , 8)                      \
  BOTH(int, regsPerBlock, , 12)                             \
  BOTH(int, warpSize, , 10)                                 \
  BOTH(size_t, memPitch, , 11)                              \
  BOTH(int, maxThreadsPerBlock, , 1)                        \
  BOTH(int, maxThreadsDim, [3], 2)                          \
  BOTH(int, maxGridSize, [3], 5)                            \
  OLD(int, clockRate, , 13)                                 \
  BOTH(size_t, totalConstMem, , 9)                          \
  BOTH(int, major, , 75)                                    \
  BOTH(int, minor, , 76)                                    \
  BOTH(size_t, textureAlignment, , 14)                      \
  BOTH(size_t, texturePitchAlignment, , 51)                 \
  OLD(int, deviceOverlap, , 15)                             \
  BOTH(int, multiProcessorCount, , 16)                      \
  OLD(int, kernelExecTimeoutEnabled, , 17)                  \
  BOTH(int, integrated, , 18)                               \
  BOTH(int, canMapHostMemory, , 19)                         \
  OLD(int, computeMode, , 20)                               \
  BOTH(int, maxTexture1D, , 21)                             \
  BOTH(int, maxTexture1DMipmap, , 77)                       \
  OLD(int, maxTexture1DLinear, , 69)                        \
  BOTH(int, maxTexture2D, [2], 22)                          \
  BOTH(int, maxTexture2DMipmap, [2], 73)                    \
  BOTH(int, maxTexture2DLinear, [3], 70)                    \
  BOTH(int, maxTexture2DGather, [2], 45)                    \
  BOTH(int, maxTexture3D, [3], 24)                          \
  BOTH(int, maxTexture3DAlt, [3], 47)                       \
  BOTH(int, maxTextureCubemap, , 52)                        \
  BOTH(int, maxTexture1DLayered, [2], 42)                   \
  BOTH(int, maxTexture2DLayered, [3], 27)                   \
  BOTH(int, maxTextureCubemapLayered, [2], 53)              \
  BOTH(int, maxSurface1D, , 55)                             \
  BOTH(int, maxSurface2D, [2], 56)                          \
  BOTH(int, maxSurface3D, [3], 58)                          \
  BOTH(int, maxSurface1DLayered, [2], 61)                   \
  BOTH(int, maxSurface2DLayered, [3], 63)                   \
  BOTH(int, maxSurfaceCubemap, , 66)                        \
  BOTH(int, maxSurfaceCubemapLayered, [2], 67)              \
  BOTH(size_t, surfaceAlignment, , 30)                      \
  BOTH(int, concurrentKernels, , 31)                        \
  BOTH(int, ECCEnabled, , 32)                               \
  BOTH(int, pciBusID, , 33)                                 \
  BOTH(int, pciDeviceID, , 34)                              \
  BOTH(int, pciDomainID, , 50)                              \
  BOTH(int, tccDriver, , 35)                                \
  BOTH(int, asyncEngineCount, , 40)                         \
  BOTH(int, unifiedAddressing, , 41)                        \
  OLD(int, memoryClockRate, , 36)                           \
  BOTH(int, memoryBusWidth, , 37)                           \
  BOTH(int, l2CacheSize, , 38)                              \
  BOTH(int, persistingL2CacheMaxSize, , 108)                \
  BOTH(int, maxThreadsPerMultiProcessor, , 39)              \
  BOTH(int, streamPrioritiesSupported, , 78)                \
  BOTH(int, globalL1CacheSupported, , 79)                   \
  BOTH(int, localL1CacheSupported, , 80)                    \
  BOTH(size_t, sharedMemPerMultiprocessor, , 81)            \
  BOTH(int, regsPerMultiprocessor, , 82)                    \
  BOTH(int, managedMemory, , 83)                            \
  BOTH(int, isMultiGpuBoard, , 84)                          \
  BOTH(int, multiGpuBoardGroupID, , 85)                     \
  BOTH(int, hostNativeAtomicSupported, , 86)                \
  OLD(int, singleToDoublePrecisionPerfRatio, , 87)          \
  BOTH(int, pageableMemoryAccess, , 88)                     \
  BOTH(int, concurrentManagedAccess, , 89)                  \
  BOTH(int, computePreemptionSupported, , 90)               \
  BOTH(int, canUseHostPointerForRegisteredMem, , 91)        \
  BOTH(int, cooperativeLaunch, , 95)                        \
  OLD(int, cooperativeMultiDeviceLaunch, , 0)               \
  BOTH(size_t, sharedMemPerBlockOptin, , 97)                \
  BOTH(int, pageableMemoryAccessUsesHostPageTables, , 100)  \
  BOTH(int, directManagedMemAccessFromHost, , 101)          \
  BOTH(int, maxBlocksPerMultiProcessor, , 106)              \
  BOTH(int, accessPolicyMaxWindowSize, , 109)               \
  BOTH(size_t, reservedSharedMemPerBlock, , 111)            \
  BOTH(int, hostRegisterSupported, , 99)                    \
  BOTH(int, sparseCudaArraySupported, , 112)                \
  BOTH(int, hostRegisterReadOnlySupported, , 113)           \
  BOTH(int, timelineSemaphoreInteropSupported, , 114)       \
  BOTH(int, memoryPoolsSupported, , 115)                    \
  BOTH(int, gpuDirectRDMASupported, , 116)                  \
  BOTH(unsigned int, gpuDirectRDMAFlushWritesOptions, , 0)  \
  BOTH(int, gpuDirectRDMAWritesOrdering, , 0)               \
  BOTH(unsigned int, memoryPoolSupportedHandleTypes, , 119) \
  BOTH(int, deferredMappingCudaArraySupported, , 121)       \
  BOTH(int, ipcEventSupported, , 125)                       \
  BOTH(int, clusterLaunch, , 120)                           \
  BOTH(int, unifiedFunctionPointers, , 0)                   \
  OLD(int, reserved, [63], 0)                               \
  NEW(int, deviceNumaConfig, , 0)                           \
  NEW(int, deviceNumaId, , 0)                               \
  NEW(int, mpsEnabled, , 0)                                 \
  NEW(int, hostNumaId, , 0)                                 \
  NEW(unsigned int, gpuPciDeviceID, , 0)                    \
  NEW(unsigned int, gpuPciSubsystemID, , 0)                 \
  NEW(int, hostNumaMultinodeIpcSupported, , 0)              \
  NEW(int, reserved, [56], 0)

#endif
