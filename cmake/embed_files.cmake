# cmake "-DIN=dist/app.js;dist/index.html" -DOUT=embedded.cc -P embed_files.cmake
#
# Writes a source that puts the files into the program as they are, by their names.
set(pieces "")
set(table "")
set(number 0)
foreach(file ${IN})
  get_filename_component(name ${file} NAME)
  set(symbol muster_embedded_${number})
  # The assembler reads the bytes: as C++ they would take the compiler seconds. ccache does not see them,
  # but the hash.
  file(SHA256 ${file} hash)
  string(APPEND pieces
         "// ${hash}\n"
         "asm(\".section .rodata\\n\"\n"
         "    \"${symbol}: .incbin \\\"${file}\\\"\\n\"\n"
         "    \"${symbol}_end: .byte 0\\n\"\n"
         "    \".previous\\n\");\n"
         "extern \"C\" const char ${symbol}[];\n"
         "extern \"C\" const char ${symbol}_end[];\n")
  string(APPEND table
         "      {\"${name}\", {${symbol}, static_cast<size_t>(${symbol}_end - ${symbol})}},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE ${OUT} "#include \"serve/embedded.h\"\n\n${pieces}\n"
     "namespace muster::serve {\n\n"
     "std::span<const EmbeddedFile> EmbeddedFiles() {\n"
     "  static const EmbeddedFile files[] = {\n${table}  };\n"
     "  return files;\n}\n\n}  // namespace muster::serve\n")
