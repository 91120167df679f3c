// Programs that change a tenant's store of blobs where it lies, for bash in the tenant's own runtime. `$1` is the directory of the
// restore, `$2` the store's.

/** Every file of the new home lies in the store before the database that speaks of it; what lay there stays. */
export const linkBlobs = `
umask 077
mkdir -p "$2"
cd "$2"
find . -mindepth 2 -type f -printf '%f\\n' | LC_ALL=C sort > "$1/before"
cp --recursive --link --update=none --no-target-directory "$1/files" "$2"
cp "$1/files/store" "$2/store"
sync --file-system "$2"
`

/** Follows the last name. */
export const endOfNames = 'end'

/**
 * Removes files that only the old home spoke of. What was written since is not among those that lay there before. Standard input is the
 * names of the new home's, sorted, and their end: where that is missing, whoever told them was killed, and nothing is removed.
 */
export const removeBlobs = `
cd "$2"
[ -e "$1/before" ] || exit 0
wanted=$(mktemp "$1/wanted-XXXXXX")
cat > "$wanted"
[ "$(tail -n 1 "$wanted")" = ${endOfNames} ] || { echo 'the names of the wanted files broke off' >&2; exit 1; }
head -n -1 "$wanted" | LC_ALL=C comm -23 "$1/before" - | while read -r blob; do rm -f "\${blob:0:2}/$blob"; done
`
