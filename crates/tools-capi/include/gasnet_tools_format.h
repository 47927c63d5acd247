/* The arguments of calls as text, for traces and messages. Included by gasnet_tools.h.
 *
 * A formatter writes into a buffer of at least the bytes that its `_bufsz` gives for the same counts. A list of memory is
 * an array of {address, length}, as gex_Memvec_t and gasnet_memvec_t are. A team, which these only print, may be any
 * pointer. */
#ifndef GASWORKS_TOOLS_FORMAT_H
#define GASWORKS_TOOLS_FORMAT_H 1

/* The addresses are of the first byte and the last of all entries, of the entries that have any; all is 0 where none has. */
typedef struct {
  size_t minsz;
  size_t maxsz;
  uintptr_t totalsz;
  void *minaddr;
  void *maxaddr;
} gasneti_memveclist_stats_t;
typedef struct {
  void *minaddr;
  void *maxaddr;
} gasneti_addrlist_stats_t;

GASNETT_BEGIN_EXTERNC
extern size_t gasnett_format_memveclist_bufsz(size_t count);
extern gasneti_memveclist_stats_t gasnett_format_memveclist(char *buffer, size_t count, const void *list);
extern size_t gasnett_format_addrlist_bufsz(size_t count);
extern gasneti_addrlist_stats_t gasnett_format_addrlist(char *buffer, size_t count, void *const list[], size_t length);
extern size_t gasnett_format_strides_bufsz(size_t count);
extern void gasnett_format_strides(char *buffer, size_t count, const ptrdiff_t strides[]);

/* These give how many bytes of data the call moves. */
extern size_t gasnett_format_putvgetv_bufsz(size_t dstcount, size_t srccount);
extern size_t gasnett_format_putvgetv(char *buffer, const void *tm, uint32_t rank, size_t dstcount, const void *dstlist,
                                      size_t srccount, const void *srclist);
extern size_t gasnett_format_putigeti_bufsz(size_t dstcount, size_t srccount);
extern size_t gasnett_format_putigeti(char *buffer, const void *tm, uint32_t rank, size_t dstcount,
                                      void *const dstlist[], size_t dstlen, size_t srccount, void *const srclist[],
                                      size_t srclen);
/* `stats` is not looked at, and may be null. */
extern size_t gasnett_format_putsgets_bufsz(size_t levels);
extern size_t gasnett_format_putsgets(char *buffer, void *stats, const void *tm, uint32_t rank, const void *dst,
                                      const ptrdiff_t dststrides[], const void *src, const ptrdiff_t srcstrides[],
                                      size_t elemsz, const size_t count[], size_t levels);

/* Sets of bits of a gex_OP_t, a gex_DT_t and a gex_TI_t, their names joined by `|`. The result is how many bytes it takes,
 * with the final zero; a null buffer asks for that alone. */
extern size_t gasnett_format_op(char *buffer, uint32_t op);
extern size_t gasnett_format_dt(char *buffer, uint32_t dt);
extern size_t gasnett_format_ti(char *buffer, unsigned int ti);
GASNETT_END_EXTERNC

#endif
