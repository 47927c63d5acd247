/* Every name of memory kinds, used once: that this compiles says that all are declared, and of which type. */
#include <gasnetex.h>

gex_MK_t names_mk_kinds[2];
gex_MK_Class_t names_mk_classes[] = {GEX_MK_CLASS_HOST, GEX_MK_CLASS_CUDA_UVA, GEX_MK_CLASS_HIP, GEX_MK_CLASS_ZE};

/* The host's memory and nothing else. */
#if !GASNET_HAVE_MK_CLASS_HOST
#error the memory of the host is always supported
#endif
#if defined(GASNET_HAVE_MK_CLASS_CUDA_UVA) || defined(GASNET_HAVE_MK_CLASS_HIP) || defined(GASNET_HAVE_MK_CLASS_ZE)
#ifndef GASNET_HAVE_MK_CLASS_MULTIPLE
#error the memory of a device is of a second class
#endif
#elif defined(GASNET_HAVE_MK_CLASS_MULTIPLE)
#error there is no second class
#endif

int (*names_mk_create)(gex_MK_t *, gex_Client_t, const gex_MK_Create_args_t *, gex_Flags_t) = gex_MK_Create;
void (*names_mk_destroy)(gex_MK_t, gex_Flags_t) = gex_MK_Destroy;
void (*names_mk_set_cdata)(gex_MK_t, const void *) = gex_MK_SetCData;
void *(*names_mk_query_cdata)(gex_MK_t) = gex_MK_QueryCData;
gex_Flags_t (*names_mk_query_flags)(gex_MK_t) = gex_MK_QueryFlags;
gex_Client_t (*names_mk_query_client)(gex_MK_t) = gex_MK_QueryClient;
gex_MK_Class_t (*names_mk_query_class)(gex_MK_t) = gex_MK_QueryClass;

void names_mk(gex_MK_Create_args_t *args);
void names_mk(gex_MK_Create_args_t *args) {
  names_mk_kinds[0] = GEX_MK_INVALID;
  names_mk_kinds[1] = GEX_MK_HOST;
  args->gex_flags = 0;
  args->gex_class = GEX_MK_CLASS_HOST;
  args->gex_args.gex_class_cuda_uva.gex_CUdevice = 0;
  args->gex_args.gex_class_hip.gex_hipDevice = 0;
  args->gex_args.gex_class_ze.gex_zeDevice = NULL;
  args->gex_args.gex_class_ze.gex_zeContext = NULL;
  args->gex_args.gex_class_ze.gex_zeMemoryOrdinal = 0;
}
