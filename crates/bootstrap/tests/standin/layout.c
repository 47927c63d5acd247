/* Prints what the headers of PMIx say about the declarations that Gasworks makes of its own, one a line. */
#include <pmix.h>
#include <pmix_deprecated.h>
#include <stddef.h>
#include <stdio.h>

#define SIZE(type) printf("sizeof(%s) %zu\n", #type, sizeof(type))
#define OFFSET(type, field) printf("offsetof(%s.%s) %zu\n", #type, #field, offsetof(type, field))
#define NUMBER(name) printf("%s %llu\n", #name, (unsigned long long)(name))
#define SIGNED(name) printf("%s %d\n", #name, name)
#define TEXT(name) printf("%s %s\n", #name, name)

/* The calls have these types, or this does not compile without a warning. */
pmix_status_t (*init)(pmix_proc_t *, pmix_info_t *, size_t) = PMIx_Init;
pmix_status_t (*finalize)(const pmix_info_t *, size_t) = PMIx_Finalize;
pmix_status_t (*end)(int, const char *, pmix_proc_t *, size_t) = PMIx_Abort;
pmix_status_t (*put)(pmix_scope_t, const char *, pmix_value_t *) = PMIx_Put;
pmix_status_t (*commit)(void) = PMIx_Commit;
pmix_status_t (*fence)(const pmix_proc_t *, size_t, const pmix_info_t *, size_t) = PMIx_Fence;
pmix_status_t (*get)(const pmix_proc_t *, const char *, const pmix_info_t *, size_t, pmix_value_t **) = PMIx_Get;
pmix_status_t (*watch)(pmix_status_t *, size_t, pmix_info_t *, size_t, pmix_notification_fn_t, pmix_hdlr_reg_cbfunc_t,
                       void *) = PMIx_Register_event_handler;
void handler(size_t, pmix_status_t, const pmix_proc_t *, pmix_info_t *, size_t, pmix_info_t *, size_t,
             void (*)(pmix_status_t, pmix_info_t *, size_t, pmix_op_cbfunc_t, void *, void *), void *);
_Static_assert(__builtin_types_compatible_p(__typeof__(&handler), pmix_notification_fn_t), "a handler");
const char *(*text)(pmix_status_t) = PMIx_Error_string;

int main(void) {
    SIZE(pmix_proc_t);
    SIZE(pmix_value_t);
    SIZE(pmix_info_t);
    SIZE(pmix_status_t);
    SIZE(pmix_scope_t);
    OFFSET(pmix_proc_t, nspace);
    OFFSET(pmix_proc_t, rank);
    OFFSET(pmix_value_t, type);
    OFFSET(pmix_value_t, data);
    OFFSET(pmix_info_t, key);
    OFFSET(pmix_info_t, flags);
    OFFSET(pmix_info_t, value);
    NUMBER(PMIX_MAX_NSLEN);
    NUMBER(PMIX_MAX_KEYLEN);
    NUMBER(PMIX_RANK_WILDCARD);
    NUMBER(PMIX_GLOBAL);
    NUMBER(PMIX_SUCCESS);
    NUMBER(PMIX_BOOL);
    NUMBER(PMIX_STRING);
    NUMBER(PMIX_INT);
    NUMBER(PMIX_UINT32);
    NUMBER(PMIX_POINTER);
    SIGNED(PMIX_ERR_LOST_CONNECTION);
    SIGNED(PMIX_ERR_LOST_CONNECTION_TO_SERVER);
    SIGNED(PMIX_EVENT_ACTION_COMPLETE);
    TEXT(PMIX_EVENT_RETURN_OBJECT);
    TEXT(PMIX_JOB_SIZE);
    TEXT(PMIX_NODEID);
    TEXT(PMIX_COLLECT_DATA);
    TEXT(PMIX_TIMEOUT);
    TEXT(PMIX_OPTIONAL);
    return 0;
}
