// What the BLAS kernel in use is worth on this processor.
#ifndef RFA_CLI_BLAS_H
#define RFA_CLI_BLAS_H

#include <stdbool.h>

// "AVX2": the best vector unit of this processor. Local.
const char *rfa_blas_processor(void);

// Whether the kernel that OpenBLAS has chosen leaves this processor's vector units unused; false
// for kernels whose name is unknown. Local.
bool rfa_blas_is_below(void);

#endif
