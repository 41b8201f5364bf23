#ifndef RFA_STORAGE_VERSION_H
#define RFA_STORAGE_VERSION_H

// "HDF5 1.10.8": the library in use.
void rfa_hdf5_version(char text[64]);

#endif
