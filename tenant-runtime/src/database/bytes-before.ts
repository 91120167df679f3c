// A part of the SQL that reads a page of rows up to a number of bytes. Pure.

/**
 * Returns an expression of the bytes of all rows before a row.
 * @param bytes an expression of the bytes of one row
 * @param order the order of the rows, as after `order by`
 */
export function bytesBefore(bytes: string, order: string): string {
  return `sum(${bytes}) over (order by ${order}) - ${bytes}`
}
