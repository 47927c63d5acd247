/* Kinds of memory: the host's and the devices'. Included by gasnetex.h, which has the handle. */
#ifndef GASNET_MK_H
#define GASNET_MK_H

#ifndef GASNETEX_H_INCLUDED
#error gasnet_mk.h is part of gasnetex.h: include that
#endif

/* Every class has its number, supported or not. */
typedef enum {
  GEX_MK_CLASS_HOST = 0,
  GEX_MK_CLASS_CUDA_UVA = 1,
  GEX_MK_CLASS_HIP = 2,
  GEX_MK_CLASS_ZE = 3
} gex_MK_Class_t;

/* Those that are supported. */
#undef GASNET_HAVE_MK_CLASS_HOST
#define GASNET_HAVE_MK_CLASS_HOST 1
#undef GASNET_HAVE_MK_CLASS_CUDA_UVA
#undef GASNET_HAVE_MK_CLASS_HIP
#undef GASNET_HAVE_MK_CLASS_ZE
/* Some class beside the host's. */
#undef GASNET_HAVE_MK_CLASS_MULTIPLE

typedef struct {
  uint64_t gex_flags;
  gex_MK_Class_t gex_class;
  union {
    struct {
      int gex_CUdevice;
    } gex_class_cuda_uva;
    struct {
      int gex_hipDevice;
    } gex_class_hip;
    struct {
      void *gex_zeDevice;
      void *gex_zeContext;
      uint32_t gex_zeMemoryOrdinal;
    } gex_class_ze;
  } gex_args;
} gex_MK_Create_args_t;

GASWORKS_BEGIN_C

/* There is the host's, GEX_MK_HOST; none of the others' can be made. */

extern int gex_MK_Create(gex_MK_t *kind, gex_Client_t client, const gex_MK_Create_args_t *args, gex_Flags_t flags);
extern void gex_MK_Destroy(gex_MK_t kind, gex_Flags_t flags);
extern void gex_MK_SetCData(gex_MK_t kind, const void *cdata);
extern void *gex_MK_QueryCData(gex_MK_t kind);
extern gex_Flags_t gex_MK_QueryFlags(gex_MK_t kind);
extern gex_Client_t gex_MK_QueryClient(gex_MK_t kind);
extern gex_MK_Class_t gex_MK_QueryClass(gex_MK_t kind);

GASWORKS_END_C

#endif
