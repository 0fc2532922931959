/* SPDX-License-Identifier: MIT */
#ifndef SRC_BASE_VERSION_H
#define SRC_BASE_VERSION_H

/* PACKAGE_VERSION comes from the build. */

#define REPORT_SCHEMA "drdotnet-trace/1" /* of every JSON this program prints */

#endif
