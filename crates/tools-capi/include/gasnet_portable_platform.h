/* Which compiler, operating system and processor a file is compiled for, found by the preprocessor alone.
 *
 * Exactly one PLATFORM_COMPILER_<FAMILY>, one PLATFORM_OS_<NAME> and one PLATFORM_ARCH_<NAME> is defined, to 1; the
 * others stay undefined. What is not recognised is PLATFORM_..._UNKNOWN. */
#ifndef GASWORKS_PORTABLE_PLATFORM_H
#define GASWORKS_PORTABLE_PLATFORM_H 1

#define GASWORKS_PLATFORM_TEXT_(x) #x
#define GASWORKS_PLATFORM_TEXT(x) GASWORKS_PLATFORM_TEXT_(x)

/* A version as one number that compares as the version does: two hexadecimal digits for the minor, four for the patch. */
#define PLATFORM_COMPILER_VERSION_INT(major, minor, patch) (((major) << 24) | ((minor) << 16) | (patch))

/* ---- compiler. The ones that pretend to be GNU or Clang come before those. ---- */

#if defined(__INTEL_LLVM_COMPILER)
#define PLATFORM_COMPILER_INTEL 1
#define PLATFORM_COMPILER_FAMILYNAME INTEL
#define PLATFORM_COMPILER_FAMILYID 2
#define PLATFORM_COMPILER_VERSION                                                                                      \
  PLATFORM_COMPILER_VERSION_INT(__INTEL_LLVM_COMPILER / 10000 % 100, __INTEL_LLVM_COMPILER / 100 % 100,                \
                                __INTEL_LLVM_COMPILER % 100)
#define PLATFORM_COMPILER_VERSION_STR GASWORKS_PLATFORM_TEXT(__INTEL_LLVM_COMPILER)
#elif defined(__INTEL_COMPILER)
#define PLATFORM_COMPILER_INTEL 1
#define PLATFORM_COMPILER_FAMILYNAME INTEL
#define PLATFORM_COMPILER_FAMILYID 2
#define PLATFORM_COMPILER_VERSION                                                                                      \
  PLATFORM_COMPILER_VERSION_INT(__INTEL_COMPILER / 100, __INTEL_COMPILER / 10 % 10, __INTEL_COMPILER % 10)
#define PLATFORM_COMPILER_VERSION_STR GASWORKS_PLATFORM_TEXT(__INTEL_COMPILER)
#elif defined(__NVCOMPILER)
#define PLATFORM_COMPILER_NVHPC 1
#define PLATFORM_COMPILER_FAMILYNAME NVHPC
#define PLATFORM_COMPILER_FAMILYID 21
#define PLATFORM_COMPILER_VERSION                                                                                      \
  PLATFORM_COMPILER_VERSION_INT(__NVCOMPILER_MAJOR__, __NVCOMPILER_MINOR__, __NVCOMPILER_PATCHLEVEL__)
#define PLATFORM_COMPILER_VERSION_STR                                                                                  \
  GASWORKS_PLATFORM_TEXT(__NVCOMPILER_MAJOR__)                                                                         \
  "." GASWORKS_PLATFORM_TEXT(__NVCOMPILER_MINOR__) "-" GASWORKS_PLATFORM_TEXT(__NVCOMPILER_PATCHLEVEL__)
#elif defined(_CRAYC)
#define PLATFORM_COMPILER_CRAY 1
#define PLATFORM_COMPILER_FAMILYNAME CRAY
#define PLATFORM_COMPILER_FAMILYID 7
#define PLATFORM_COMPILER_VERSION PLATFORM_COMPILER_VERSION_INT(_RELEASE_MAJOR, _RELEASE_MINOR, 0)
#define PLATFORM_COMPILER_VERSION_STR                                                                                  \
  GASWORKS_PLATFORM_TEXT(_RELEASE_MAJOR) "." GASWORKS_PLATFORM_TEXT(_RELEASE_MINOR)
#elif defined(__ibmxl__) || defined(__xlC__)
#define PLATFORM_COMPILER_XLC 1
#define PLATFORM_COMPILER_FAMILYNAME XLC
#define PLATFORM_COMPILER_FAMILYID 4
#if defined(__ibmxl_version__)
#define PLATFORM_COMPILER_VERSION                                                                                      \
  PLATFORM_COMPILER_VERSION_INT(__ibmxl_version__, __ibmxl_release__, __ibmxl_modification__)
#else
#define PLATFORM_COMPILER_VERSION PLATFORM_COMPILER_VERSION_INT(__xlC__ >> 8, __xlC__ & 255, 0)
#endif
#define PLATFORM_COMPILER_VERSION_STR GASWORKS_PLATFORM_TEXT(PLATFORM_COMPILER_VERSION)
#elif defined(__clang__)
#define PLATFORM_COMPILER_CLANG 1
#define PLATFORM_COMPILER_FAMILYNAME CLANG
#define PLATFORM_COMPILER_FAMILYID 19
#define PLATFORM_COMPILER_VERSION                                                                                      \
  PLATFORM_COMPILER_VERSION_INT(__clang_major__, __clang_minor__, __clang_patchlevel__)
#define PLATFORM_COMPILER_VERSION_STR __clang_version__
#elif defined(__GNUC__)
#define PLATFORM_COMPILER_GNU 1
#define PLATFORM_COMPILER_FAMILYNAME GNU
#define PLATFORM_COMPILER_FAMILYID 1
#if defined(__GNUC_PATCHLEVEL__)
#define PLATFORM_COMPILER_VERSION PLATFORM_COMPILER_VERSION_INT(__GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__)
#else
#define PLATFORM_COMPILER_VERSION PLATFORM_COMPILER_VERSION_INT(__GNUC__, __GNUC_MINOR__, 0)
#endif
#define PLATFORM_COMPILER_VERSION_STR __VERSION__
#else
#define PLATFORM_COMPILER_UNKNOWN 1
#define PLATFORM_COMPILER_FAMILYNAME UNKNOWN
#define PLATFORM_COMPILER_FAMILYID 9999
#define PLATFORM_COMPILER_VERSION 0
#define PLATFORM_COMPILER_VERSION_STR "unknown"
#endif

/* The family with the language: PLATFORM_COMPILER_GNU_C or PLATFORM_COMPILER_GNU_CXX, and so on. */
#if defined(__cplusplus)
#define PLATFORM_COMPILER_CXX 1
#define PLATFORM_COMPILER_CXX_LANGLVL __cplusplus
#define GASWORKS_PLATFORM_LANGUAGE "C++"
#define GASWORKS_PLATFORM_LANGUAGE_ID 10000
#else
#define PLATFORM_COMPILER_C 1
#if defined(__STDC_VERSION__)
#define PLATFORM_COMPILER_C_LANGLVL __STDC_VERSION__
#else
#define PLATFORM_COMPILER_C_LANGLVL 199000L
#endif
#define GASWORKS_PLATFORM_LANGUAGE "C"
#define GASWORKS_PLATFORM_LANGUAGE_ID 0
#endif

#if defined(PLATFORM_COMPILER_GNU) && defined(__cplusplus)
#define PLATFORM_COMPILER_GNU_CXX 1
#elif defined(PLATFORM_COMPILER_GNU)
#define PLATFORM_COMPILER_GNU_C 1
#elif defined(PLATFORM_COMPILER_CLANG) && defined(__cplusplus)
#define PLATFORM_COMPILER_CLANG_CXX 1
#elif defined(PLATFORM_COMPILER_CLANG)
#define PLATFORM_COMPILER_CLANG_C 1
#elif defined(PLATFORM_COMPILER_INTEL) && defined(__cplusplus)
#define PLATFORM_COMPILER_INTEL_CXX 1
#elif defined(PLATFORM_COMPILER_INTEL)
#define PLATFORM_COMPILER_INTEL_C 1
#elif defined(PLATFORM_COMPILER_NVHPC) && defined(__cplusplus)
#define PLATFORM_COMPILER_NVHPC_CXX 1
#elif defined(PLATFORM_COMPILER_NVHPC)
#define PLATFORM_COMPILER_NVHPC_C 1
#elif defined(PLATFORM_COMPILER_CRAY) && defined(__cplusplus)
#define PLATFORM_COMPILER_CRAY_CXX 1
#elif defined(PLATFORM_COMPILER_CRAY)
#define PLATFORM_COMPILER_CRAY_C 1
#elif defined(PLATFORM_COMPILER_XLC) && defined(__cplusplus)
#define PLATFORM_COMPILER_XLC_CXX 1
#elif defined(PLATFORM_COMPILER_XLC)
#define PLATFORM_COMPILER_XLC_C 1
#endif

#define PLATFORM_COMPILER_ID (PLATFORM_COMPILER_FAMILYID + GASWORKS_PLATFORM_LANGUAGE_ID)
#define PLATFORM_COMPILER_IDSTR                                                                                        \
  "|COMPILER_FAMILY:" GASWORKS_PLATFORM_TEXT(PLATFORM_COMPILER_FAMILYNAME)                                             \
  "|COMPILER_VERSION:" PLATFORM_COMPILER_VERSION_STR "|LANGUAGE:" GASWORKS_PLATFORM_LANGUAGE "|"

#define PLATFORM_COMPILER_VERSION_GT(major, minor, patch)                                                              \
  (PLATFORM_COMPILER_VERSION > PLATFORM_COMPILER_VERSION_INT(major, minor, patch))
#define PLATFORM_COMPILER_VERSION_GE(major, minor, patch)                                                              \
  (PLATFORM_COMPILER_VERSION >= PLATFORM_COMPILER_VERSION_INT(major, minor, patch))
#define PLATFORM_COMPILER_VERSION_EQ(major, minor, patch)                                                              \
  (PLATFORM_COMPILER_VERSION == PLATFORM_COMPILER_VERSION_INT(major, minor, patch))
#define PLATFORM_COMPILER_VERSION_LE(major, minor, patch)                                                              \
  (PLATFORM_COMPILER_VERSION <= PLATFORM_COMPILER_VERSION_INT(major, minor, patch))
#define PLATFORM_COMPILER_VERSION_LT(major, minor, patch)                                                              \
  (PLATFORM_COMPILER_VERSION < PLATFORM_COMPILER_VERSION_INT(major, minor, patch))

/* ---- operating system ---- */

#if defined(__linux__) || defined(__linux)
#define PLATFORM_OS_LINUX 1
#define PLATFORM_OS_FAMILYNAME LINUX
#elif defined(__APPLE__) && defined(__MACH__)
#define PLATFORM_OS_DARWIN 1
#define PLATFORM_OS_FAMILYNAME DARWIN
#elif defined(__FreeBSD__)
#define PLATFORM_OS_FREEBSD 1
#define PLATFORM_OS_FAMILYNAME FREEBSD
#elif defined(__NetBSD__)
#define PLATFORM_OS_NETBSD 1
#define PLATFORM_OS_FAMILYNAME NETBSD
#elif defined(__OpenBSD__)
#define PLATFORM_OS_OPENBSD 1
#define PLATFORM_OS_FAMILYNAME OPENBSD
#elif defined(__CYGWIN__)
#define PLATFORM_OS_CYGWIN 1
#define PLATFORM_OS_FAMILYNAME CYGWIN
#elif defined(__sun) || defined(__sun__)
#define PLATFORM_OS_SOLARIS 1
#define PLATFORM_OS_FAMILYNAME SOLARIS
#elif defined(_AIX)
#define PLATFORM_OS_AIX 1
#define PLATFORM_OS_FAMILYNAME AIX
#else
#define PLATFORM_OS_UNKNOWN 1
#define PLATFORM_OS_FAMILYNAME UNKNOWN
#endif

/* ---- processor ---- */

#if defined(__x86_64__) || defined(__x86_64) || defined(_M_X64)
#define PLATFORM_ARCH_X86_64 1
#define PLATFORM_ARCH_FAMILYNAME X86_64
#elif defined(__i386__) || defined(__i386) || defined(_M_IX86)
#define PLATFORM_ARCH_X86 1
#define PLATFORM_ARCH_FAMILYNAME X86
#elif defined(__aarch64__) || defined(_M_ARM64)
#define PLATFORM_ARCH_AARCH64 1
#define PLATFORM_ARCH_FAMILYNAME AARCH64
#elif defined(__arm__) || defined(_M_ARM)
#define PLATFORM_ARCH_ARM 1
#define PLATFORM_ARCH_FAMILYNAME ARM
#elif defined(__powerpc__) || defined(__powerpc64__) || defined(__ppc__) || defined(__PPC__) || defined(_ARCH_PPC)
#define PLATFORM_ARCH_POWERPC 1
#define PLATFORM_ARCH_FAMILYNAME POWERPC
#elif defined(__riscv)
#define PLATFORM_ARCH_RISCV 1
#define PLATFORM_ARCH_FAMILYNAME RISCV
#elif defined(__s390__) || defined(__s390x__)
#define PLATFORM_ARCH_S390 1
#define PLATFORM_ARCH_FAMILYNAME S390
#elif defined(__mips__)
#define PLATFORM_ARCH_MIPS 1
#define PLATFORM_ARCH_FAMILYNAME MIPS
#elif defined(__sparc__) || defined(__sparc)
#define PLATFORM_ARCH_SPARC 1
#define PLATFORM_ARCH_FAMILYNAME SPARC
#else
#define PLATFORM_ARCH_UNKNOWN 1
#define PLATFORM_ARCH_FAMILYNAME UNKNOWN
#endif

#if defined(_LP64) || defined(__LP64__) || defined(__x86_64__) || defined(__aarch64__) || defined(__powerpc64__) ||    \
    (defined(__riscv_xlen) && __riscv_xlen == 64)
#define PLATFORM_ARCH_64 1
#else
#define PLATFORM_ARCH_32 1
#endif

#if defined(__BYTE_ORDER__) && defined(__ORDER_BIG_ENDIAN__)
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define PLATFORM_ARCH_BIG_ENDIAN 1
#else
#define PLATFORM_ARCH_LITTLE_ENDIAN 1
#endif
#elif defined(__BIG_ENDIAN__) || defined(_BIG_ENDIAN)
#define PLATFORM_ARCH_BIG_ENDIAN 1
#else
#define PLATFORM_ARCH_LITTLE_ENDIAN 1
#endif

#endif
