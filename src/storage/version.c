#include "storage/version.h"

#include <hdf5.h>

#include <stdio.h>

void rfa_hdf5_version(char text[64])
{
    unsigned major = 0, minor = 0, release = 0;
    H5get_libversion(&major, &minor, &release);
    snprintf(text, 64, "HDF5 %u.%u.%u", major, minor, release);
}
