include(CMakeFindDependencyMacro)
find_dependency(Threads)
find_dependency(tl-expected)
include(${CMAKE_CURRENT_LIST_DIR}/musterTargets.cmake)
