// `npm run check:comments -- FOLDER…` finds doc comments that are not whole sentences. An editor shows a doc comment alone, so
// it begins with a capital letter or a name of code, ends with a full stop, and does not begin as the rest of another sentence.
import { commentViolations } from './comments/comment-violations.ts'
import { tokensOf } from './words/tokens.ts'
import { readTracked } from './tracked-files.ts'

const found = readTracked(process.argv.slice(2), ['ts']).flatMap(({ file, source }) =>
  tokensOf(file, source)
    .filter(({ kind, text }) => kind === 'comment' && text.startsWith('/**'))
    .flatMap(({ text, line }) => commentViolations(text).map((violation) => `${file}:${line} ${violation}`)),
)

for (const one of found) console.log(one)
if (found.length > 0) console.log(`${found.length} doc comments are not whole sentences`)
process.exitCode = found.length === 0 ? 0 : 1
