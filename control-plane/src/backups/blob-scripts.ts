// Bash programs that change a tenant's blob store in place, for the tenant's own runtime. `$1` is the directory of the
// restore, `$2` the store's.

/** Adds every file of the new home to the store, before the database that refers to them. Existing files stay. */
export const linkBlobs = `
umask 077
mkdir -p "$2"
cd "$2"
find . -mindepth 2 -type f -printf '%f\\n' | LC_ALL=C sort > "$1/before"
cp --recursive --link --update=none --no-target-directory "$1/files" "$2"
cp "$1/files/store" "$2/store"
sync --file-system "$2"
`

/** The line that follows the last name. */
export const endOfNames = 'end'

/**
 * Removes files that only the old home referred to. Files written since are not in the list of earlier files. Standard
 * input is the sorted names of the new home's files and an end line. Without it the writer was killed, and nothing is
 * removed.
 */
export const removeBlobs = `
cd "$2"
[ -e "$1/before" ] || exit 0
wanted=$(mktemp "$1/wanted-XXXXXX")
cat > "$wanted"
[ "$(tail -n 1 "$wanted")" = ${endOfNames} ] || { echo 'The list of wanted files is incomplete.' >&2; exit 1; }
head -n -1 "$wanted" | LC_ALL=C comm -23 "$1/before" - | while read -r blob; do rm -f "\${blob:0:2}/$blob"; done
`
