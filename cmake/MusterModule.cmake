# Parses one of the headers in this folder once, for all targets that take it by
# target_precompile_headers(TARGET REUSE_FROM muster_NAME). gcc wants both compiled with the same
# options.
function(muster_precompile name)
  cmake_parse_arguments(arg "" "HEADER" "OPTIONS;LIBRARIES" ${ARGN})
  muster_reject_unknown(${name} ${arg_UNPARSED_ARGUMENTS})
  set(source ${PROJECT_BINARY_DIR}/generated/${name}.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "")
  add_library(muster_${name} OBJECT ${source})
  target_include_directories(muster_${name} PRIVATE ${PROJECT_SOURCE_DIR}/include
                                                    ${PROJECT_SOURCE_DIR}/cmake)
  target_link_libraries(muster_${name} PRIVATE Threads::Threads ${arg_LIBRARIES})
  target_compile_options(muster_${name} PRIVATE ${arg_OPTIONS})
  if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
    # Otherwise clang refuses one from ccache: it looks at the time, not only at the contents.
    target_compile_options(muster_${name} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  endif()
  # In brackets, so that the text is the same in every checkout and ccache has compiled it before.
  target_precompile_headers(muster_${name} PRIVATE <${arg_HEADER}>)
endfunction()

function(muster_compile_part target precompiled)
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR}/include
                                              ${PROJECT_SOURCE_DIR}/src)
  target_precompile_headers(${target} REUSE_FROM ${precompiled})
endfunction()

# Declares one folder of src/ as a module:
#
#   muster_module(store
#     HEADERS muster/store.h          public headers that this module owns
#     SOURCES memory_store.cc ...
#     FAST sha256.cc ...              sources that pay for -O2: they touch each document
#     DEPENDS base                    the modules it may include and link; nothing else
#     LIBRARIES sqlite3 pq            system libraries, by plain name
#     TESTS memory_store_test.cc ...  built into store_tests, label `unit`
#     [OPEN]                          a toolbox: others may include every header, not only store.h
#     [THREADS])                      as for muster_test()
#
# The graph of modules is written to module_graph.txt in the build folder, and the test
# `architecture` holds every #include against it.
function(muster_module name)
  cmake_parse_arguments(arg "OPEN;THREADS" "" "HEADERS;SOURCES;FAST;DEPENDS;LIBRARIES;TESTS" ${ARGN})
  muster_reject_unknown(${name} ${arg_UNPARSED_ARGUMENTS})
  list(TRANSFORM arg_DEPENDS PREPEND muster_ OUTPUT_VARIABLE dependencies)
  add_library(muster_${name} STATIC ${arg_SOURCES})
  set(objects $<TARGET_OBJECTS:muster_${name}>)
  muster_compile_part(muster_${name} muster_precompiled)
  target_link_libraries(muster_${name} PUBLIC ${dependencies} Threads::Threads
                                       PRIVATE ${arg_LIBRARIES})
  if(arg_FAST AND MUSTER_SANITIZE)
    target_sources(muster_${name} PRIVATE ${arg_FAST})
  elseif(arg_FAST)
    # Of its own, since a precompiled header serves one level of optimisation.
    add_library(muster_${name}_fast OBJECT ${arg_FAST})
    muster_compile_part(muster_${name}_fast muster_precompiled_fast)
    target_link_libraries(muster_${name}_fast PRIVATE ${dependencies} Threads::Threads)
    target_compile_options(muster_${name}_fast PRIVATE -O2)
    target_sources(muster_${name} PRIVATE $<TARGET_OBJECTS:muster_${name}_fast>)
    list(APPEND objects $<TARGET_OBJECTS:muster_${name}_fast>)
  endif()
  muster_group_sources(muster_${name})
  if(arg_FAST AND NOT MUSTER_SANITIZE)
    muster_group_sources(muster_${name}_fast)
  endif()
  list(JOIN arg_DEPENDS " " depends)
  list(JOIN arg_HEADERS " " headers)
  set(door "")
  if(arg_OPEN)
    set(door " | open")
  endif()
  set_property(GLOBAL APPEND PROPERTY muster_graph "${name}: ${depends} | ${headers}${door}")
  set_property(GLOBAL PROPERTY muster_objects_${name} ${objects})
  set_property(GLOBAL PROPERTY muster_libraries_${name} ${arg_LIBRARIES})
  set_property(GLOBAL PROPERTY muster_headers_${name} ${arg_HEADERS})
  if(arg_TESTS)
    set(threads "")
    if(arg_THREADS)
      set(threads THREADS)
    endif()
    muster_test(${name}_tests LABEL unit ${threads} SOURCES ${arg_TESTS} DEPENDS ${name})
    # For those helpers in tests/support that are headers only.
    target_include_directories(${name}_tests PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  endif()
endfunction()

# Declares a GoogleTest executable and runs it as one ctest of the same name:
#
#   muster_test(store_contract LABEL contract SOURCES ... DEPENDS store test_support
#     [SLOW]           more than some seconds: not in `./muster test quick`
#     [THREADS]        shares memory among threads: also in `./muster test tsan`
#     [PROCESSORS 4]   in quarters of a core; 1 unless given: most tests mostly wait
#     [TIMEOUT 600])
#
# What became of each of its tests is left in results/NAME.xml of the build folder.
function(muster_test name)
  cmake_parse_arguments(arg "SLOW;THREADS" "LABEL;PROCESSORS;TIMEOUT" "SOURCES;DEPENDS;LIBRARIES"
                        ${ARGN})
  muster_reject_unknown(${name} ${arg_UNPARSED_ARGUMENTS})
  list(TRANSFORM arg_DEPENDS PREPEND muster_ OUTPUT_VARIABLE dependencies)
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${dependencies} GTest::gtest_main ${arg_LIBRARIES})
  # The tests' own code is not what takes time when they run.
  target_compile_options(${name} PRIVATE -O0)
  target_precompile_headers(${name} REUSE_FROM muster_precompiled_tests)
  muster_group_sources(${name})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  add_test(NAME ${name}
           COMMAND ${name} --gtest_output=xml:${PROJECT_BINARY_DIR}/results/${name}.xml)
  if(NOT arg_PROCESSORS)
    set(arg_PROCESSORS 1)
  endif()
  set(labels ${arg_LABEL})
  if(arg_SLOW)
    list(APPEND labels slow)
  endif()
  if(arg_THREADS)
    list(APPEND labels threads)
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${labels}" TIMEOUT ${arg_TIMEOUT}
                                          PROCESSORS ${arg_PROCESSORS})
endfunction()

# Joins modules into the one library that is installed, as muster::muster, and as muster::shared if the
# component `shared` is installed as well. Both are made of the same objects.
function(muster_library name)
  add_library(${name} STATIC)
  add_library(${name}_shared SHARED)
  foreach(library ${name} ${name}_shared)
    foreach(module ${ARGN})
      get_property(objects GLOBAL PROPERTY muster_objects_${module})
      get_property(libraries GLOBAL PROPERTY muster_libraries_${module})
      target_sources(${library} PRIVATE ${objects})
      target_link_libraries(${library} PRIVATE ${libraries})
    endforeach()
    set_target_properties(${library} PROPERTIES LINKER_LANGUAGE CXX)
    target_link_libraries(${library} PUBLIC Threads::Threads)
    target_compile_features(${library} PUBLIC cxx_std_20)
    target_include_directories(${library} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  endforeach()
  foreach(module ${ARGN})
    get_property(headers GLOBAL PROPERTY muster_headers_${module})
    list(TRANSFORM headers PREPEND ${PROJECT_SOURCE_DIR}/include/)
    install(FILES ${headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/muster)
  endforeach()
  install(TARGETS ${name} EXPORT musterTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  # Before 1.0 a minor version may change the interface.
  set_target_properties(${name}_shared PROPERTIES
    OUTPUT_NAME ${name} EXPORT_NAME shared VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  install(TARGETS ${name}_shared EXPORT musterSharedTargets
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT shared EXCLUDE_FROM_ALL)
  # CMake strips programs and shared libraries only.
  install(CODE "execute_process(COMMAND \"${CMAKE_STRIP}\" --strip-debug
    \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/lib${name}.a\"
    COMMAND_ERROR_IS_FATAL ANY)")
  install(EXPORT musterTargets NAMESPACE muster:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/muster)
  install(EXPORT musterSharedTargets NAMESPACE muster:: COMPONENT shared EXCLUDE_FROM_ALL
          DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/muster)
  include(CMakePackageConfigHelpers)
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/musterConfigVersion.cmake
                                   COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_SOURCE_DIR}/cmake/musterConfig.cmake
                ${PROJECT_BINARY_DIR}/musterConfigVersion.cmake
          DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/muster)
endfunction()

# Has muster_write_groups() compile several sources of a target as one: that takes about half as long, but
# after a change in one of them, all are compiled again.
function(muster_group_sources target)
  set_property(GLOBAL APPEND PROPERTY muster_grouped ${target})
endfunction()

# To be called when all targets are complete. scripts/group_sources chooses sources whose names do not
# collide, by their text; those with definitions or folders of their own are left as they are. Sources with
# planted bugs are grouped apart: their objects in `planted_bugs` stand in for whole objects of the libraries.
function(muster_write_groups)
  get_property(targets GLOBAL PROPERTY muster_grouped)
  get_property(planted GLOBAL PROPERTY muster_planted_files)
  set(list "")
  foreach(target ${targets})
    get_target_property(sources ${target} SOURCES)
    get_target_property(folder ${target} SOURCE_DIR)
    # By their options: most have none.
    set(kinds "")
    foreach(source ${sources})
      cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${folder} NORMALIZE OUTPUT_VARIABLE path)
      if(NOT path MATCHES "^${PROJECT_SOURCE_DIR}/(src|tests|bench)/.*\\.cc$")
        continue()
      endif()
      get_source_file_property(definitions ${path} TARGET_DIRECTORY ${target} COMPILE_DEFINITIONS)
      get_source_file_property(folders ${path} TARGET_DIRECTORY ${target} INCLUDE_DIRECTORIES)
      get_source_file_property(options ${path} TARGET_DIRECTORY ${target} COMPILE_OPTIONS)
      if(definitions OR folders)
        continue()
      endif()
      if(NOT options)
        set(options "")
      endif()
      string(MAKE_C_IDENTIFIER "of_${options}" kind)
      if(path IN_LIST planted)
        string(APPEND kind _planted)
      endif()
      list(APPEND kinds ${kind})
      set(options_${kind} "${options}")
      cmake_path(RELATIVE_PATH path BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
      list(APPEND sources_${kind} ${path})
      set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
    endforeach()
    list(REMOVE_DUPLICATES kinds)
    foreach(kind ${kinds})
      string(APPEND list "${target}|${options_${kind}}|${sources_${kind}}\n")
      unset(sources_${kind})
    endforeach()
  endforeach()
  set(folder ${PROJECT_BINARY_DIR}/generated/groups)
  file(WRITE ${folder}/list.txt "${list}")
  execute_process(
    COMMAND ${PROJECT_SOURCE_DIR}/scripts/group_sources ${PROJECT_SOURCE_DIR} ${folder}/list.txt ${folder}
    OUTPUT_FILE ${folder}/groups.cmake COMMAND_ERROR_IS_FATAL ANY)
  include(${folder}/groups.cmake)
endfunction()

# Of a target, in groups.cmake: compiles `source` instead of those that it includes.
function(muster_replace target source options)
  get_target_property(folder ${target} SOURCE_DIR)
  get_target_property(sources ${target} SOURCES)
  set(left ${source})
  foreach(each ${sources})
    cmake_path(ABSOLUTE_PATH each BASE_DIRECTORY ${folder} NORMALIZE OUTPUT_VARIABLE path)
    cmake_path(RELATIVE_PATH path BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
    if(NOT path IN_LIST ARGN)
      list(APPEND left ${each})
    endif()
  endforeach()
  set_target_properties(${target} PROPERTIES SOURCES "${left}")
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  set_source_files_properties(${source} TARGET_DIRECTORY ${target} PROPERTIES COMPILE_OPTIONS
                                                                              "${options}")
endfunction()

function(muster_write_module_graph)
  get_property(graph GLOBAL PROPERTY muster_graph)
  list(JOIN graph "\n" text)
  file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/module_graph.txt CONTENT "${text}\n")
endfunction()

# A misspelt keyword would otherwise be taken for one more source or dropped in silence.
function(muster_reject_unknown name)
  if(ARGN)
    message(FATAL_ERROR "${name}: what are these? ${ARGN}")
  endif()
endfunction()
