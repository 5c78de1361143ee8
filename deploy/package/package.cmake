# Manual pages and shell completions, which every installation gets, and the Debian package (`make package`), which adds the
# service and its settings.
include(${CMAKE_SOURCE_DIR}/deploy/man/keys.cmake)
zt_manual_of_keys(KEYS ${CMAKE_SOURCE_DIR}/config/ztserve.schema.json)
foreach(section 1 5)
  if(section EQUAL 1)
    set(page ztserve.1)
  else()
    set(page ztserve.json.5)
  endif()
  configure_file(deploy/man/${page}.in ${page} @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
endforeach()

# The program writes its completions; where a shell looks for them, by its name.
set(ZT_COMPLETION_bash bash-completion/completions/ztserve)
set(ZT_COMPLETION_zsh zsh/site-functions/_ztserve)
set(ZT_COMPLETION_fish fish/vendor_completions.d/ztserve.fish)
foreach(shell bash zsh fish)
  set(file ${CMAKE_BINARY_DIR}/completion/${ZT_COMPLETION_${shell}})
  get_filename_component(folder ${file} DIRECTORY)
  file(MAKE_DIRECTORY ${folder})
  add_custom_command(OUTPUT ${file} COMMAND ztserve completion ${shell} > ${file} DEPENDS ztserve VERBATIM)
  list(APPEND ZT_COMPLETIONS ${file})
  get_filename_component(folder ${ZT_COMPLETION_${shell}} DIRECTORY)
  install(FILES ${file} DESTINATION ${CMAKE_INSTALL_DATADIR}/${folder})
endforeach()
add_custom_target(completions ALL DEPENDS ${ZT_COMPLETIONS})

# The program writes a page of the manual for each of its commands, which stand in its table.
set(table ${CMAKE_SOURCE_DIR}/server/commands/command_table.c)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${table})
file(STRINGS ${table} rows REGEX "^    {\\.name = ")
foreach(row ${rows})
  string(REGEX REPLACE ".*{\\.name = \"([a-z-]+)\".*" "\\1" command "${row}")
  set(file ${CMAKE_BINARY_DIR}/manual/ztserve-${command}.1)
  add_custom_command(OUTPUT ${file} COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/manual
                     COMMAND ztserve help --man ${command} > ${file} DEPENDS ztserve VERBATIM)
  list(APPEND ZT_COMMAND_PAGES ${file})
  install(FILES ${file} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endforeach()
add_custom_target(manual ALL DEPENDS ${ZT_COMMAND_PAGES})

# --- the Debian package: component `debian`, which only packaging installs ---
set(ZT_MAINTAINER "ztserve maintainers <maintainers@ztserve.example>" CACHE STRING "Maintainer of the Debian package")
set(ZT_DEBIAN_RELEASE 1 CACHE STRING "Release of the Debian package, what follows the version and a hyphen")
set(ZT_DEBIAN_VERSION ${PROJECT_VERSION}-${ZT_DEBIAN_RELEASE})
set(ZT_DEBIAN_DOC share/doc/ztserve)
set(debian COMPONENT debian EXCLUDE_FROM_ALL)

# zt_debian_gzip(SOURCE FOLDER NAME): installs SOURCE as NAME.gz, the same bytes whenever it is made.
function(zt_debian_gzip source folder name)
  set(packed ${CMAKE_BINARY_DIR}/debian/${name}.gz)
  add_custom_command(OUTPUT ${packed} COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/debian
                     COMMAND gzip -9nc ${source} > ${packed} DEPENDS ${source} VERBATIM)
  set_property(GLOBAL APPEND PROPERTY ZT_DEBIAN_PACKED ${packed})
  install(FILES ${packed} DESTINATION ${folder} ${debian})
endfunction()

configure_file(deploy/package/changelog.in debian/changelog.Debian @ONLY)
zt_debian_gzip(${CMAKE_BINARY_DIR}/ztserve.1 share/man/man1 ztserve.1)
foreach(file ${ZT_COMMAND_PAGES})
  get_filename_component(page ${file} NAME)
  zt_debian_gzip(${file} share/man/man1 ${page})
endforeach()
zt_debian_gzip(${CMAKE_BINARY_DIR}/ztserve.json.5 share/man/man5 ztserve.json.5)
zt_debian_gzip(${CMAKE_BINARY_DIR}/debian/changelog.Debian ${ZT_DEBIAN_DOC} changelog.Debian)
zt_debian_gzip(${CMAKE_SOURCE_DIR}/CHANGELOG.md ${ZT_DEBIAN_DOC} changelog)
get_property(packed GLOBAL PROPERTY ZT_DEBIAN_PACKED)
add_custom_target(debian-files DEPENDS ${packed})

install(TARGETS ztserve RUNTIME DESTINATION bin ${debian})
install(FILES README.md deploy/package/README.Debian deploy/package/copyright DESTINATION ${ZT_DEBIAN_DOC} ${debian})
install(DIRECTORY docs DESTINATION ${ZT_DEBIAN_DOC} ${debian} FILES_MATCHING PATTERN "*.md")
install(FILES deploy/package/ztserve.json DESTINATION /etc/ztserve ${debian})
# Packages have a folder of their own for zsh.
foreach(file ${ZT_COMPLETIONS})
  get_filename_component(folder ${file} DIRECTORY)
  file(RELATIVE_PATH folder ${CMAKE_BINARY_DIR}/completion ${folder})
  string(REPLACE site-functions vendor-completions folder ${folder})
  install(FILES ${file} DESTINATION share/${folder} ${debian})
endforeach()
file(GLOB units CONFIGURE_DEPENDS deploy/systemd/ztserve.service deploy/systemd/ztserve.socket)
install(FILES ${units} DESTINATION lib/systemd/system ${debian})

set(CPACK_GENERATOR DEB)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_COMPONENTS_ALL debian)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
# Whatever the umask is.
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ
                                                WORLD_EXECUTE)
set(CPACK_PACKAGE_CONTACT "${ZT_MAINTAINER}")
set(CPACK_DEBIAN_DEBIAN_PACKAGE_NAME ztserve)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE ${ZT_DEBIAN_RELEASE})
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_DEBIAN_PACKAGE_DEPENDS adduser)
# For object stores over TLS.
set(CPACK_DEBIAN_DEBIAN_PACKAGE_RECOMMENDS ca-certificates)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_DEBIAN_PACKAGE_CONTROL_EXTRA ${CMAKE_SOURCE_DIR}/deploy/package/postinst
    ${CMAKE_SOURCE_DIR}/deploy/package/prerm ${CMAKE_SOURCE_DIR}/deploy/package/postrm
    ${CMAKE_SOURCE_DIR}/deploy/package/conffiles)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "server for tensor container files")
set(CPACK_COMPONENT_DEBIAN_DESCRIPTION
    "ztserve opens zTensor, .mag, safetensors, GGUF, ONNX, PyTorch, NPZ and NPY
files, checks them, converts between formats, and serves models over HTTP:
manifests as JSON, and components, slices, shards and whole models with ranges
and digests. It accepts uploads whole, resumably, or component by component.")
include(CPack)
