# The fuzz targets, fuzz_*.c, for tests/fuzz/run.sh: it hands this file to the project by
# CMAKE_PROJECT_rfa_INCLUDE, and the targets are made when the library is known.
function(add_fuzz_targets)
  file(GLOB sources CONFIGURE_DEPENDS tests/fuzz/fuzz_*.c)
  foreach(source ${sources})
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} EXCLUDE_FROM_ALL ${source})
    target_include_directories(${name} PRIVATE tests)
    target_link_libraries(${name} PRIVATE rfa_f32)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  endforeach()
endfunction()
cmake_language(DEFER CALL add_fuzz_targets)
