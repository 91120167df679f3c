// AssemblyScript code that the functions of several tests share.

/** The function `readAll`, which returns the whole standard input. */
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
