/* The arguments of calls as text, for traces and messages. Included by gasnet_tools.h.
 *
 * A formatter writes into a buffer of at least the bytes that its `_bufsz` gives for the same counts, and returns the
 * buffer. A list of memory is an array of {address, length}, as gex_Memvec_t and gasnet_memvec_t are. A team, which these
 * only print, may be any pointer. */
#ifndef GASWORKS_TOOLS_FORMAT_H
#define GASWORKS_TOOLS_FORMAT_H 1

GASNETT_BEGIN_EXTERNC
extern size_t gasnett_format_memveclist_bufsz(size_t count);
extern char *gasnett_format_memveclist(char *buffer, size_t count, const void *list);
extern size_t gasnett_format_addrlist_bufsz(size_t count);
extern char *gasnett_format_addrlist(char *buffer, size_t count, void *const list[], size_t length);
extern size_t gasnett_format_strides_bufsz(size_t count);
extern char *gasnett_format_strides(char *buffer, size_t count, const ptrdiff_t strides[]);

extern size_t gasnett_format_putvgetv_bufsz(size_t dstcount, size_t srccount);
extern char *gasnett_format_putvgetv(char *buffer, const void *tm, uint32_t rank, size_t dstcount, const void *dstlist,
                                     size_t srccount, const void *srclist);
extern size_t gasnett_format_putigeti_bufsz(size_t dstcount, size_t srccount);
extern char *gasnett_format_putigeti(char *buffer, const void *tm, uint32_t rank, size_t dstcount, void *const dstlist[],
                                     size_t dstlen, size_t srccount, void *const srclist[], size_t srclen);
extern size_t gasnett_format_putsgets_bufsz(size_t levels);
extern char *gasnett_format_putsgets(char *buffer, const void *tm, uint32_t rank, const void *dst,
                                     const ptrdiff_t dststrides[], const void *src, const ptrdiff_t srcstrides[],
                                     size_t elemsz, const size_t count[], size_t levels);

/* Sets of bits, their names joined by `|`. At most `size` bytes are written, the final zero among them; the result is
 * how many the whole would take, so that a null buffer of size 0 asks for it. */
extern size_t gasnett_format_op(char *buffer, size_t size, uint32_t op);
extern size_t gasnett_format_dt(char *buffer, size_t size, uint32_t dt);
/* The names of the bits of a gex_TI_t. The text is the thread's, and lasts until its next call of this. */
extern const char *gasnett_format_ti(unsigned int ti);
GASNETT_END_EXTERNC

#endif
