/* Every name of GASNet-1, used once: that this compiles says that all are declared, and of which type. */
#include <gasnet.h>

#if GASNET_SPEC_VERSION_MAJOR != 1 || GASNET_SPEC_VERSION_MINOR != 8 || GASNET_VERSION != GASNET_SPEC_VERSION_MAJOR
#error this is version 1.8 of the interface
#endif
#if GASNET_ALIGNED_SEGMENTS != 0 && GASNET_ALIGNED_SEGMENTS != 1
#error segments are aligned or not
#endif
#if SIZEOF_GASNET_REGISTER_VALUE_T != 8
#error a value has 8 bytes
#endif
char names_legacy_value[sizeof(gasnet_register_value_t) == SIZEOF_GASNET_REGISTER_VALUE_T ? 1 : -1];

/* The types that programs write out by position, with their members. */
static void names_handler(gasnet_token_t token, gasnet_handlerarg_t arg) { (void)token, (void)arg; }
gasnet_handlerentry_t names_legacy_table[] = {{128, (gex_AM_Fn_t)names_handler}};
gasnet_memvec_t names_legacy_vector = {names_legacy_value, sizeof names_legacy_value};
gasnet_seginfo_t names_legacy_segment = {names_legacy_value, sizeof names_legacy_value};
gasnet_hsl_t names_legacy_lock = GASNET_HSL_INITIALIZER;
gasnet_handler_t names_legacy_index = 255;
gasnet_handlerarg_t names_legacy_arg = -1;
gasnet_node_t names_legacy_node = 0;
gasnet_token_t names_legacy_token;
gasnet_valget_handle_t names_legacy_valget;
gasnet_handle_t names_legacy_handle = GASNET_INVALID_HANDLE;

/* The job. */
int (*names_legacy_init)(int *, char ***) = gasnet_init;
int (*names_legacy_attach)(gasnet_handlerentry_t *, int, uintptr_t, uintptr_t) = gasnet_attach;
void (*names_legacy_objects)(gex_Client_t *, gex_EP_t *, gex_TM_t *, gex_Segment_t *) = gasnet_QueryGexObjects;
gasnet_node_t (*names_legacy_nodes[])(void) = {gasnet_mynode, gasnet_nodes};
int (*names_legacy_segments)(gasnet_seginfo_t *, int) = gasnet_getSegmentInfo;
int (*names_legacy_places)(gasnet_nodeinfo_t *, int) = gasnet_getNodeInfo;
void (*names_legacy_nothing[])(void) = {gasnet_hold_interrupts, gasnet_resume_interrupts,
                                        gasnet_begin_nbi_accessregion};
int (*names_legacy_source)(gasnet_token_t, gasnet_node_t *) = gasnet_AMGetMsgSource;
size_t (*names_legacy_limits[])(void) = {gasnet_AMMaxArgs, gasnet_AMMaxMedium, gasnet_AMMaxLongRequest,
                                         gasnet_AMMaxLongReply};

/* Put and get. */
typedef gasnet_handle_t names_put_nb(gasnet_node_t, void *, const void *, size_t);
typedef gasnet_handle_t names_get_nb(void *, gasnet_node_t, void *, size_t);
typedef void names_put(gasnet_node_t, void *, const void *, size_t);
typedef void names_get(void *, gasnet_node_t, void *, size_t);
typedef void names_memset(gasnet_node_t, void *, int, size_t);
typedef void names_put_value(gasnet_node_t, void *, gasnet_register_value_t, size_t);
names_put *names_legacy_puts[] = {gasnet_put, gasnet_put_bulk, gasnet_put_nbi, gasnet_put_nbi_bulk};
names_get *names_legacy_gets[] = {gasnet_get, gasnet_get_bulk, gasnet_get_nbi, gasnet_get_nbi_bulk};
names_put_nb *names_legacy_puts_nb[] = {gasnet_put_nb, gasnet_put_nb_bulk};
names_get_nb *names_legacy_gets_nb[] = {gasnet_get_nb, gasnet_get_nb_bulk};
names_memset *names_legacy_memsets[] = {gasnet_memset, gasnet_memset_nbi};
gasnet_handle_t (*names_legacy_memset_nb)(gasnet_node_t, void *, int, size_t) = gasnet_memset_nb;
names_put_value *names_legacy_values[] = {gasnet_put_val, gasnet_put_nbi_val};
gasnet_handle_t (*names_legacy_value_nb)(gasnet_node_t, void *, gasnet_register_value_t, size_t) = gasnet_put_nb_val;
gasnet_register_value_t (*names_legacy_get_value)(gasnet_node_t, void *, size_t) = gasnet_get_val;
gasnet_valget_handle_t (*names_legacy_get_value_nb)(gasnet_node_t, void *, size_t) = gasnet_get_nb_val;
gasnet_register_value_t (*names_legacy_wait_value)(gasnet_valget_handle_t) = gasnet_wait_syncnb_valget;

/* Until it is done. */
gasnet_handle_t (*names_legacy_region)(void) = gasnet_end_nbi_accessregion;
void (*names_legacy_wait)(gasnet_handle_t) = gasnet_wait_syncnb;
int (*names_legacy_try[])(gasnet_handle_t) = {gasnet_try_syncnb, gasnet_try_syncnb_nopoll};
void (*names_legacy_wait_array[])(gasnet_handle_t *, size_t) = {gasnet_wait_syncnb_some, gasnet_wait_syncnb_all};
int (*names_legacy_try_array[])(gasnet_handle_t *, size_t) = {
    gasnet_try_syncnb_some, gasnet_try_syncnb_some_nopoll, gasnet_try_syncnb_all, gasnet_try_syncnb_all_nopoll};
void (*names_legacy_wait_implicit[])(void) = {gasnet_wait_syncnbi_all, gasnet_wait_syncnbi_gets,
                                              gasnet_wait_syncnbi_puts};
int (*names_legacy_try_implicit[])(void) = {gasnet_try_syncnbi_all, gasnet_try_syncnbi_gets, gasnet_try_syncnbi_puts};

/* Scattered data. */
typedef void names_putv(gasnet_node_t, size_t, gasnet_memvec_t const[], size_t, gasnet_memvec_t const[]);
typedef void names_getv(size_t, gasnet_memvec_t const[], gasnet_node_t, size_t, gasnet_memvec_t const[]);
typedef gasnet_handle_t names_putv_nb(gasnet_node_t, size_t, gasnet_memvec_t const[], size_t, gasnet_memvec_t const[]);
typedef gasnet_handle_t names_getv_nb(size_t, gasnet_memvec_t const[], gasnet_node_t, size_t, gasnet_memvec_t const[]);
typedef void names_puti(gasnet_node_t, size_t, void *const[], size_t, size_t, void *const[], size_t);
typedef void names_geti(size_t, void *const[], size_t, gasnet_node_t, size_t, void *const[], size_t);
typedef gasnet_handle_t names_puti_nb(gasnet_node_t, size_t, void *const[], size_t, size_t, void *const[], size_t);
typedef gasnet_handle_t names_geti_nb(size_t, void *const[], size_t, gasnet_node_t, size_t, void *const[], size_t);
typedef void names_puts(gasnet_node_t, void *, const size_t[], void *, const size_t[], const size_t[], size_t);
typedef void names_gets(void *, const size_t[], gasnet_node_t, void *, const size_t[], const size_t[], size_t);
typedef gasnet_handle_t names_puts_nb(gasnet_node_t, void *, const size_t[], void *, const size_t[], const size_t[],
                                      size_t);
typedef gasnet_handle_t names_gets_nb(void *, const size_t[], gasnet_node_t, void *, const size_t[], const size_t[],
                                      size_t);
names_putv *names_legacy_putv[] = {gasnet_putv_bulk, gasnet_putv_nbi_bulk};
names_getv *names_legacy_getv[] = {gasnet_getv_bulk, gasnet_getv_nbi_bulk};
names_putv_nb *names_legacy_putv_nb = gasnet_putv_nb_bulk;
names_getv_nb *names_legacy_getv_nb = gasnet_getv_nb_bulk;
names_puti *names_legacy_puti[] = {gasnet_puti_bulk, gasnet_puti_nbi_bulk};
names_geti *names_legacy_geti[] = {gasnet_geti_bulk, gasnet_geti_nbi_bulk};
names_puti_nb *names_legacy_puti_nb = gasnet_puti_nb_bulk;
names_geti_nb *names_legacy_geti_nb = gasnet_geti_nb_bulk;
names_puts *names_legacy_strided_put[] = {gasnet_puts_bulk, gasnet_puts_nbi_bulk};
names_gets *names_legacy_strided_get[] = {gasnet_gets_bulk, gasnet_gets_nbi_bulk};
names_puts_nb *names_legacy_strided_put_nb = gasnet_puts_nb_bulk;
names_gets_nb *names_legacy_strided_get_nb = gasnet_gets_nb_bulk;

/* What is a macro is expanded. */
int names_legacy(gasnet_nodeinfo_t *place, gasnet_threadinfo_t *here);
int names_legacy(gasnet_nodeinfo_t *place, gasnet_threadinfo_t *here) {
  GASNET_BEGIN_FUNCTION();
  gasnet_hsl_t lock = GASNET_HSL_INITIALIZER;
  int taken;
  GASNET_POST_THREADINFO(*here);
  *here = GASNET_GET_THREADINFO();
  gasnet_hsl_init(&lock);
  gasnet_hsl_lock(&lock);
  gasnet_hsl_unlock(&lock);
  taken = gasnet_hsl_trylock(&lock) == GASNET_OK;
  if (taken) gasnet_hsl_unlock(&lock);
  gasnet_hsl_destroy(&lock);
  place->host = place->supernode = gasneti_mynode;
  place->offset = 0;
  return taken;
}
