# Extracts the commands of one document. For the Nth it writes N.where (file:line), N.command and
# N.expected (the lines shown after it) into the folder SESSION. Prints the blocks that are not to be
# run, and refuses commands in other kinds of blocks, which would not be run.

function refuse(why) {
  print document ":" FNR ": " why
  refused = 1
}

function start_command() {
  base = sprintf("%s/%03d", session, ++commands)
  print document ":" FNR > (base ".where")
  printf "" > (base ".expected")
  blank_lines = ""
  continue_command(substr(text, 3))
}

function continue_command(words) {
  print words > (base ".command")
  in_command = words ~ /\\$/
}

# Blank lines between an output and the next command are layout.
function expect_line() {
  if (text == "") {
    blank_lines = blank_lines "\n"
  } else {
    print blank_lines text > (base ".expected")
    blank_lines = ""
  }
}

function open_block() {
  in_block = 1
  base = ""
  indent = index($0, "`") - 1
  fence = substr($0, indent + 1)
  sub(/^```+ */, "", fence)
  is_console = fence ~ /^console/
  runs = fence == "console"
  if (fence ~ /^console no-run: *[^ ]/) print "not run: " document ":" FNR ": " fence
  else if (is_console && !runs) refuse("fence it as `console` or `console no-run: REASON`")
  else if (fence ~ /^(sh|bash|shell|zsh)( |$)/) refuse("commands are fenced as `console`, after `$ `")
}

function close_block() {
  if (runs && base == "") refuse("a console block without a command")
  in_block = in_command = 0
}

/^ *```/ && !in_block { open_block(); next }
/^ *``` *$/ { close_block(); next }
!in_block { next }

# A block in a list is indented as a whole.
{ text = substr($0, indent + 1) }

!is_console && text ~ /^ *\$ / { refuse("a command in a block that is not fenced as `console`") }
!runs { next }
in_command { continue_command(text); next }
text ~ /^\$ / { start_command(); next }
base == "" { refuse("output before the first command"); next }
{ expect_line() }

END {
  if (in_block) refuse("a block is not closed")
  exit refused
}
