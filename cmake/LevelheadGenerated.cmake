# The manual page and what shells complete, written by the command when it is installed.
if(CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR)
  message(STATUS "no manual page, no completions: the command that writes them can't run here")
  return()
endif()

function(install_generated format folder name)
  set(written ${PROJECT_BINARY_DIR}/generated/${format})
  install(
    CODE "
    file(MAKE_DIRECTORY \"${PROJECT_BINARY_DIR}/generated\")
    set(command ${CMAKE_CROSSCOMPILING_EMULATOR} \"$<TARGET_FILE:levelhead_cli>\")
    execute_process(COMMAND \${command} generate ${format} OUTPUT_FILE \"${written}\" COMMAND_ERROR_IS_FATAL ANY)")
  install(FILES ${written} DESTINATION ${folder} RENAME ${name})
endfunction()

install_generated(man ${CMAKE_INSTALL_MANDIR}/man1 levelhead.1)
install_generated(bash ${CMAKE_INSTALL_DATADIR}/bash-completion/completions levelhead)
install_generated(zsh ${CMAKE_INSTALL_DATADIR}/zsh/site-functions _levelhead)
install_generated(fish ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d levelhead.fish)
