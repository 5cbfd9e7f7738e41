# cmake "-DIN=a.js;b.js" -DSPACE=script -DNAME=kScript -DOUT=script.cc -P embed_text.cmake
#
# Writes the files, one after the other, as the text `muster::SPACE::NAME`.
set(text "")
foreach(file ${IN})
  file(READ ${file} part)
  string(APPEND text "${part}\n")
endforeach()
file(WRITE ${OUT} "#include <string_view>\n\nnamespace muster::${SPACE} {\n"
     "extern const std::string_view ${NAME};\n"
     "const std::string_view ${NAME} = R\"embedded_text(" "${text}" ")embedded_text\";\n"
     "}  // namespace muster::${SPACE}\n")
