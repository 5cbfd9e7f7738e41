include(CMakeFindDependencyMacro)
find_dependency(Threads)
include(${CMAKE_CURRENT_LIST_DIR}/musterTargets.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/musterSharedTargets.cmake OPTIONAL)
