/*
 * All of Cray's PMI in one header: PMI-1, PMI-2, and Cray's extensions. GASNet's configure script looks for it first.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The genuine header was never public.
 */
#ifndef PMI_CRAY_H
#define PMI_CRAY_H

#include <pmi.h>
#include <pmi2.h>
#include <pmi_cray_ext.h>

#endif /* PMI_CRAY_H */
