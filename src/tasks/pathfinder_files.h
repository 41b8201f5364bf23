// The released Pathfinder pictures: a tree of PNG files with text files of metadata.
#ifndef RFA_TASKS_PATHFINDER_FILES_H
#define RFA_TASKS_PATHFINDER_FILES_H

#include "tasks/image.h"

// Lists the pictures of one difficulty (contour of 6, 9 or 14 dashes) in or below root: in
// curv_baseline, curv_contour_length_9 or curv_contour_length_14 the files metadata/K.npy, which
// are text, a line for each picture: folder, file, number, label, continuity, contour, .... They
// come in the order of K and line; the first 80 % are train, the next 10 % val, the rest test.
// Empty pictures are skipped and counted. RFA_ERR_IO with file:line for a label that is not 0 or 1,
// another contour, a picture that is missing. Local.
RFA_NODISCARD rfa_status rfa_pathfinder_list(rfa_index *index,
                                             rfa_image_facts *facts,
                                             const char *root,
                                             int contour);

#endif
