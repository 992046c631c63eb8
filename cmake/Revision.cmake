# SPDX-License-Identifier: Apache-2.0
# cmake -D "SOURCES=FILE;.." -D FOLDER=LAYER -D OUT=FILE.cc -P Revision.cmake: see forge_revision.
list(SORT SOURCES)
set(all "")
foreach(source IN LISTS SOURCES)
  file(SHA1 "${source}" one)
  string(APPEND all "${one}")
endforeach()
string(SHA1 all "${all}")
string(SUBSTRING "${all}" 0 16 all)
file(WRITE "${OUT}" "// SPDX-License-Identifier: Apache-2.0
#include <string_view>

namespace forge::${FOLDER} {
std::string_view Revision();
std::string_view Revision() { return \"${all}\"; }
}  // namespace forge::${FOLDER}
")
