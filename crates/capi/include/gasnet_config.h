/* What this installation is: literal numbers and switches, which build scripts of clients also read as text. */
#ifndef GASNET_CONFIG_H
#define GASNET_CONFIG_H

#define GASNET_RELEASE_VERSION_MAJOR 2025
#define GASNET_RELEASE_VERSION_MINOR 8
#define GASNET_RELEASE_VERSION_PATCH 0
#define GEX_SPEC_VERSION_MAJOR 0
#define GEX_SPEC_VERSION_MINOR 19
#define GASNET_SPEC_VERSION_MAJOR 1
#define GASNET_SPEC_VERSION_MINOR 8
#define GASNET_VERSION 1

/* The one kind of segment: of a size that its owner asks for, at one place. */
#if defined(GASNET_SEGMENT_LARGE) || defined(GASNET_SEGMENT_EVERYTHING)
#error There are segments of one kind: GASNET_SEGMENT_FAST
#endif
#undef GASNET_SEGMENT_FAST
#define GASNET_SEGMENT_FAST 1

#define GASNET_PAGESIZE 4096
#define GASNET_MAXNODES 0x7FFFFFFFu
#define GASNET_ALIGNED_SEGMENTS 0
#define GASNET_NULL_ARGV_OK 1
#define GASNET_PSHM 1
#define GASNETI_PSHM_ENABLED 1

#undef GASNET_TRACE
#undef GASNET_STATS
#undef GASNET_SRCLINES
#undef GASNET_DEBUGMALLOC

#undef GASNET_RCV_THREAD
#undef GASNET_SND_THREAD

#define HAVE_PTHREAD_H 1
#ifndef HAVE_MMAP
#define HAVE_MMAP 1
#endif

#endif
