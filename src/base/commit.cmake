# Writes OUT with the commit of SOURCE and whether its tracked files are modified.
cmake_minimum_required(VERSION 3.25)
execute_process(COMMAND git -C ${SOURCE} rev-parse --short=12 HEAD
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
set(dirty 0)
if(failed)
  set(commit none)
else()
  execute_process(COMMAND git -C ${SOURCE} status --porcelain --untracked-files=no
    OUTPUT_VARIABLE changes ERROR_QUIET)
  if(changes)
    set(dirty 1)
  endif()
endif()
file(CONFIGURE OUTPUT ${OUT} @ONLY CONTENT
"#define RFA_VERSION \"@VERSION@\"
#define RFA_COMMIT \"@commit@\"
#define RFA_DIRTY @dirty@
#define RFA_COMPILER \"@COMPILER@\"
#define RFA_CPU_LEVEL \"@LEVEL@\"
")
