// Pieces of AssemblyScript that the tests' functions share.

/** `readAll()`: standard input, whole. */
export const readAll = `
function readAll(): string {
  const chunk = new ArrayBuffer(1000)
  let text = ''
  let count = <i32>process.stdin.read(chunk)
  while (count > 0) {
    text += String.UTF8.decode(chunk.slice(0, count))
    count = <i32>process.stdin.read(chunk)
  }
  return text
}
`
