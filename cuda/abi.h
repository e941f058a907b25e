/* abi.h: the types of CUDA's runtime API that cross its binary interface, as far as these libraries use them.
 *
 * Names and layouts are those of the API's documents; tests/test_cuda_abi.py compares sizes and offsets with CUDA's own headers
 * where those are installed. Enumerations are ints.
 */
#ifndef PTXEMU_CUDA_ABI_H
#define PTXEMU_CUDA_ABI_H
#include <stddef.h>
#include <stdint.h>

typedef int cudaError_t;

enum {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInitializationError = 3,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorInvalidPitchValue = 12,
  cudaErrorInvalidSymbol = 13,
  cudaErrorInvalidTexture = 18,
  cudaErrorInvalidChannelDescriptor = 20,
  cudaErrorInvalidMemcpyDirection = 21,
  cudaErrorMissingConfiguration = 52,
  cudaErrorInvalidDeviceFunction = 98,
  cudaErrorInvalidDevice = 101,
  cudaErrorInvalidKernelImage = 200,
  cudaErrorDeviceUninitialized = 201,
  cudaErrorNoKernelImageForDevice = 209,
  cudaErrorInvalidPtx = 218,
  cudaErrorOperatingSystem = 304,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorIllegalState = 401,
  cudaErrorNotReady = 600,
  cudaErrorIllegalAddress = 700,
  cudaErrorLaunchOutOfResources = 701,
  cudaErrorPeerAccessNotEnabled = 705,
  cudaErrorContextIsDestroyed = 709,
  cudaErrorHostMemoryAlreadyRegistered = 712,
  cudaErrorLaunchFailure = 719,
  cudaErrorCooperativeLaunchTooLarge = 720,
  cudaErrorNotPermitted = 800,
  cudaErrorNotSupported = 801,
  cudaErrorStreamCaptureUnsupported = 900,
  cudaErrorStreamCaptureInvalidated = 901,
  cudaErrorStreamCaptureMerge = 902,
  cudaErrorStreamCaptureUnmatched = 903,
  cudaErrorStreamCaptureUnjoined = 904,
  cudaErrorStreamCaptureIsolation = 905,
  cudaErrorStreamCaptureImplicit = 906,
  cudaErrorCapturedEvent = 907,
  cudaErrorStreamCaptureWrongThread = 908,
  cudaErrorGraphExecUpdateFailure = 910,
  cudaErrorInvalidClusterSize = 912,
  cudaErrorUnknown = 999
};

typedef struct dim3 {
  unsigned x, y, z;
} dim3;

typedef struct px_stream *cudaStream_t;
typedef struct px_event *cudaEvent_t;
typedef struct px_graph *cudaGraph_t;
typedef struct px_graph_exec *cudaGraphExec_t;
typedef struct px_node *cudaGraphNode_t;
typedef struct px_array *cudaArray_t;
typedef struct px_mipmap *cudaMipmappedArray_t;
typedef struct px_pool *cudaMemPool_t;
typedef struct px_function *cudaKernel_t;
typedef uint64_t cudaTextureObject_t;
typedef uint64_t cudaSurfaceObject_t;
typedef void (*cudaStreamCallback_t)(cudaStream_t stream, cudaError_t status, void *data);
typedef void (*cudaHostFn_t)(void *data);
typedef int (*px_blocks_to_bytes)(int);

enum { cudaMemcpyHostToHost, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice, cudaMemcpyDefault };

typedef struct cudaExtent {
  size_t width, height, depth;
} cudaExtent;

typedef struct cudaPos {
  size_t x, y, z;
} cudaPos;

typedef struct cudaPitchedPtr {
  void *ptr;
  size_t pitch, xsize, ysize;
} cudaPitchedPtr;

typedef struct cudaMemcpy3DParms {
  cudaArray_t srcArray;
  cudaPos srcPos;
  cudaPitchedPtr srcPtr;
  cudaArray_t dstArray;
  cudaPos dstPos;
  cudaPitchedPtr dstPtr;
  cudaExtent extent;
  int kind;
} cudaMemcpy3DParms;

enum { cudaChannelFormatKindSigned, cudaChannelFormatKindUnsigned, cudaChannelFormatKindFloat };

typedef struct cudaChannelFormatDesc {
  int x, y, z, w; /* bits of each component */
  int f;
} cudaChannelFormatDesc;

enum { cudaArrayLayered = 1, cudaArraySurfaceLoadStore = 2, cudaArrayCubemap = 4, cudaArrayTextureGather = 8 };
enum { cudaResourceTypeArray, cudaResourceTypeMipmappedArray, cudaResourceTypeLinear, cudaResourceTypePitch2D };

typedef struct cudaResourceDesc {
  int resType;
  union {
    struct {
      cudaArray_t array;
    } array;
    struct {
      cudaMipmappedArray_t mipmap;
    } mipmap;
    struct {
      void *devPtr;
      cudaChannelFormatDesc desc;
      size_t sizeInBytes;
    } linear;
    struct {
      void *devPtr;
      cudaChannelFormatDesc desc;
      size_t width, height, pitchInBytes;
    } pitch2D;
    int reserved[32];
  } res;
  unsigned flags; /* from CUDA 13 on */
} cudaResourceDesc;

enum { cudaReadModeElementType, cudaReadModeNormalizedFloat };

typedef struct cudaTextureDesc {
  int addressMode[3];
  int filterMode;
  int readMode;
  int sRGB;
  float borderColor[4];
  int normalizedCoords;
  unsigned maxAnisotropy;
  int mipmapFilterMode;
  float mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp;
  int disableTrilinearOptimization;
  int seamlessCubemap;
} cudaTextureDesc;

typedef struct cudaResourceViewDesc {
  int format; /* 0: that of the resource */
  size_t width, height, depth;
  unsigned firstMipmapLevel, lastMipmapLevel, firstLayer, lastLayer;
  unsigned reserved[16];
} cudaResourceViewDesc;

typedef struct cudaFuncAttributes {
  size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
  int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, cacheModeCA, maxDynamicSharedSizeBytes;
  int preferredShmemCarveout, clusterDimMustBeSet, requiredClusterWidth, requiredClusterHeight, requiredClusterDepth;
  int clusterSchedulingPolicyPreference, nonPortableClusterSizeAllowed;
  int reserved[16];
} cudaFuncAttributes;

enum { cudaMemoryTypeUnregistered, cudaMemoryTypeHost, cudaMemoryTypeDevice, cudaMemoryTypeManaged };

typedef struct cudaPointerAttributes {
  int type, device;
  void *devicePointer, *hostPointer;
  long reserved[8]; /* from CUDA 13 on */
} cudaPointerAttributes;

enum {
  cudaLaunchAttributeIgnore = 0,
  cudaLaunchAttributeCooperative = 2,
  cudaLaunchAttributeClusterDimension = 4,
  cudaLaunchAttributePriority = 8
};

typedef union cudaLaunchAttributeValue {
  char pad[64];
  int cooperative;
  struct {
    unsigned x, y, z;
  } clusterDim;
  int priority;
} cudaLaunchAttributeValue;

typedef struct cudaLaunchAttribute {
  int id;
  int pad;
  cudaLaunchAttributeValue val;
} cudaLaunchAttribute;

typedef struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes;
  cudaStream_t stream;
  cudaLaunchAttribute *attrs;
  unsigned numAttrs;
} cudaLaunchConfig_t;

/* What other processes get of memory; of an event, they get the same. */
typedef struct cudaIpcMemHandle_t {
  char reserved[64];
} cudaIpcMemHandle_t;
typedef cudaIpcMemHandle_t cudaIpcEventHandle_t;

enum {
  cudaMemLocationTypeDevice = 1,
  cudaMemLocationTypeHost,
  cudaMemLocationTypeHostNuma,
  cudaMemLocationTypeHostNumaCurrent
};

typedef struct cudaMemLocation {
  int type;
  int id;
} cudaMemLocation;

/* ---- graphs ---- */

enum {
  cudaGraphNodeTypeKernel,
  cudaGraphNodeTypeMemcpy,
  cudaGraphNodeTypeMemset,
  cudaGraphNodeTypeHost,
  cudaGraphNodeTypeGraph,
  cudaGraphNodeTypeEmpty,
  cudaGraphNodeTypeWaitEvent,
  cudaGraphNodeTypeEventRecord,
  cudaGraphNodeTypeMemAlloc = 10,
  cudaGraphNodeTypeMemFree,
  cudaGraphNodeTypeConditional = 13
};

typedef unsigned long long cudaGraphConditionalHandle;
enum { cudaGraphCondTypeIf, cudaGraphCondTypeWhile, cudaGraphCondTypeSwitch };

typedef struct cudaConditionalNodeParams {
  cudaGraphConditionalHandle handle;
  int type;
  unsigned size;            /* graphs */
  cudaGraph_t *phGraph_out; /* written */
} cudaConditionalNodeParams;

typedef struct cudaGraphEdgeData {
  unsigned char from_port, to_port, type;
  unsigned char reserved[5];
} cudaGraphEdgeData;

typedef struct cudaKernelNodeParams {
  void *func;
  dim3 gridDim, blockDim;
  unsigned sharedMemBytes;
  void **kernelParams, **extra;
} cudaKernelNodeParams;

typedef struct cudaMemcpyNodeParams {
  int flags;
  int reserved[3];
  cudaMemcpy3DParms copyParams;
} cudaMemcpyNodeParams;

typedef struct cudaMemsetParams {
  void *dst;
  size_t pitch;
  unsigned value, elementSize;
  size_t width, height; /* elements, rows */
} cudaMemsetParams;

typedef struct cudaHostNodeParams {
  cudaHostFn_t fn;
  void *userData;
} cudaHostNodeParams;

enum { cudaMemAllocationTypePinned = 1, cudaMemHandleTypePosixFileDescriptor = 1 };

typedef struct cudaMemPoolProps {
  int allocType, handleTypes;
  cudaMemLocation location;
  void *win32SecurityAttributes;
  size_t maxSize;
  unsigned short usage;
  unsigned char reserved[54];
} cudaMemPoolProps;

typedef struct cudaMemAccessDesc {
  cudaMemLocation location;
  int flags;
} cudaMemAccessDesc;

typedef struct cudaMemPoolPtrExportData {
  unsigned char reserved[64];
} cudaMemPoolPtrExportData;

typedef struct cudaMemAllocNodeParams {
  cudaMemPoolProps poolProps;
  const cudaMemAccessDesc *accessDescs;
  size_t accessDescCount, bytesize;
  void *dptr; /* written */
} cudaMemAllocNodeParams;

typedef struct cudaMemFreeNodeParams {
  void *dptr;
} cudaMemFreeNodeParams;

typedef struct cudaGraphNodeParams {
  int type;
  int reserved0[3];
  union {
    long long reserved1[29];
    cudaKernelNodeParams kernel;
    cudaMemcpyNodeParams memcpy;
    cudaMemsetParams memset;
    cudaHostNodeParams host;
    cudaGraph_t graph;
    cudaEvent_t event;
    cudaMemAllocNodeParams alloc;
    cudaMemFreeNodeParams free;
    cudaConditionalNodeParams conditional;
  };
  long long reserved2;
} cudaGraphNodeParams;

typedef struct cudaGraphInstantiateParams {
  unsigned long long flags;
  cudaStream_t uploadStream;
  cudaGraphNode_t errNode_out;
  int result_out;
} cudaGraphInstantiateParams;

enum {
  cudaGraphExecUpdateSuccess,
  cudaGraphExecUpdateError,
  cudaGraphExecUpdateErrorTopologyChanged,
  cudaGraphExecUpdateErrorNodeTypeChanged,
  cudaGraphExecUpdateErrorNotSupported = 6
};

typedef struct cudaGraphExecUpdateResultInfo {
  int result;
  cudaGraphNode_t errorNode, errorFromNode;
} cudaGraphExecUpdateResultInfo;

/* What nvcc's code registers: a fat binary, and what lies around it. Of a program of several files (-rdc=true), the image holds machine
 * code, and `more` is a list of the files' fat binaries, which ends with NULL. */
enum { PX_FAT_WRAPPER = 0x466243b1, PX_FAT_LINKED = 2 };
typedef struct px_fat_wrapper {
  int magic, version; /* 1, or PX_FAT_LINKED */
  const void *image;
  const void *more;
} px_fat_wrapper;

#endif
