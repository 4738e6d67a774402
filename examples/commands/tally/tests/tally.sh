#!/bin/sh
# A suite in sh that prints TAP. The program is in another room: `subject` calls it, and brings back what it says.

number=0

# check NAME STATUS OUTPUT INPUT [ARGUMENT...]: output and input as printf has them; what is refused prints nothing.
check() {
    name=$1 status=$2 output=$3 input=$4
    shift 4
    number=$((number + 1))
    expected=$(printf "$output" && echo "status $status")
    found=$(printf "$input" | subject "$@" 2>/dev/null; echo "status $?")
    if [ "$found" = "$expected" ]; then
        echo "ok $number - $name"
    else
        echo "not ok $number - $name"
        echo "  ---"
        echo "  found: |"
        printf '%s\n' "$found" | head -c 400 | sed 's/^/    /'
        echo
        echo "  ..."
    fi
}

echo "TAP version 14"
echo "1..14"
check "amounts of a name are added" 0 'tea 7\n' 'tea 3\ntea 4\n'
check "names are in order" 0 'Zoe 1\nann 1\nann2 1\n' 'ann2 1\nann 1\nZoe 1\n'
check "no input gives no output" 0 '' ''
check "amounts may be negative" 0 'a -5\nb 0\n' 'a -8\nb -2\na 3\nb 2\n'
check "blank lines and outer spaces do not count" 0 'a 3\n' '\n  a 1  \n    \na   2\n'
check "the last line needs no newline" 0 'a 3\n' 'a 1\na 2'
check "--top keeps the largest, largest first" 0 'c 9\nb 5\n' 'a 1\nb 5\nc 4\nc 5\n' --top 2
check "--top has ties in the order of names" 0 'b 5\na 2\nc 2\n' 'c 2\na 2\nb 5\nd 1\n' --top 3
check "--top of more than there are keeps all" 0 'b 2\na 1\n' 'a 1\nb 2\n' --top 12
check "a line of one word is refused" 2 '' 'a\n'
check "an amount that is no whole number is refused" 2 '' 'a 1.5\n'
check "a limit below one is refused" 2 '' 'a 1\n' --top 0
check "an unknown option is refused" 2 '' 'a 1\n' --all
check "what is refused prints nothing before it" 2 '' 'a 1\nb 2\nc x\n'
