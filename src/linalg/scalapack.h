// Prototypes of BLACS, ScaLAPACK and LAPACK, which come without a header. Only for this room.
// Fortran strings have a hidden length behind the last argument (gfortran's ABI).
#ifndef RFA_LINALG_SCALAPACK_H
#define RFA_LINALG_SCALAPACK_H

#include <mpi.h>
#include <stddef.h>

int Csys2blacs_handle(MPI_Comm comm);
void Cfree_blacs_system_handle(int handle);
void Cblacs_gridinit(int *context, const char *order, int rows, int columns);
void Cblacs_gridinfo(int context, int *rows, int *columns, int *row, int *column);
void Cblacs_gridexit(int context);
void Cblacs_exit(int keep_mpi);

void pdgemm_(const char *op_a,
             const char *op_b,
             const int *m,
             const int *n,
             const int *k,
             const double *alpha,
             const double *a,
             const int *ia,
             const int *ja,
             const int *desc_a,
             const double *b,
             const int *ib,
             const int *jb,
             const int *desc_b,
             const double *beta,
             double *c,
             const int *ic,
             const int *jc,
             const int *desc_c);
void pdposv_(const char *uplo,
             const int *n,
             const int *nrhs,
             double *a,
             const int *ia,
             const int *ja,
             const int *desc_a,
             double *b,
             const int *ib,
             const int *jb,
             const int *desc_b,
             int *info,
             size_t uplo_length);
void pdgesvd_(const char *job_u,
              const char *job_vt,
              const int *m,
              const int *n,
              double *a,
              const int *ia,
              const int *ja,
              const int *desc_a,
              double *s,
              double *u,
              const int *iu,
              const int *ju,
              const int *desc_u,
              double *vt,
              const int *ivt,
              const int *jvt,
              const int *desc_vt,
              double *work,
              const int *lwork,
              int *info,
              size_t job_u_length,
              size_t job_vt_length);
void pdgeqrf_(const int *m,
              const int *n,
              double *a,
              const int *ia,
              const int *ja,
              const int *desc_a,
              double *tau,
              double *work,
              const int *lwork,
              int *info);
void pdorgqr_(const int *m,
              const int *n,
              const int *k,
              double *a,
              const int *ia,
              const int *ja,
              const int *desc_a,
              const double *tau,
              double *work,
              const int *lwork,
              int *info);

void dposv_(const char *uplo,
            const int *n,
            const int *nrhs,
            double *a,
            const int *lda,
            double *b,
            const int *ldb,
            int *info,
            size_t uplo_length);
void dgesdd_(const char *job,
             const int *m,
             const int *n,
             double *a,
             const int *lda,
             double *s,
             double *u,
             const int *ldu,
             double *vt,
             const int *ldvt,
             double *work,
             const int *lwork,
             int *iwork,
             int *info,
             size_t job_length);

#endif
