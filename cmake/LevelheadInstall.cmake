# Library, headers, package files for find_package(levelhead) and pkg-config, the command when it is built, the licence.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/levelhead)

install(TARGETS levelhead EXPORT levelheadTargets)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/levelhead TYPE INCLUDE)
install(EXPORT levelheadTargets NAMESPACE levelhead:: DESTINATION ${package_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/levelheadConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/levelheadConfig.cmake INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/levelheadConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/levelheadConfig.cmake ${PROJECT_BINARY_DIR}/levelheadConfigVersion.cmake
        DESTINATION ${package_dir})
include(LevelheadPkgConfig)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE TYPE DOC)
if(LEVELHEAD_BUILD_CLI)
  install(TARGETS levelhead_cli)
  include(LevelheadGenerated)
endif()
