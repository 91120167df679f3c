// Logs in while a login's password is rotated: until the rotation ends, either of its passwords may be the valid one.
import pg from 'pg'

/** The SQLSTATE of a wrong password. */
const invalidPassword = '28P01'

/** Connects with the first of the URLs whose password Postgres accepts. @throws the last error of `connect` */
export async function withValidPassword<T>(
  [url = '', ...others]: readonly string[],
  connect: (url: string) => Promise<T>,
): Promise<T> {
  try {
    return await connect(url)
  } catch (error) {
    if (others.length === 0 || !(error instanceof pg.DatabaseError) || error.code !== invalidPassword) throw error
    return withValidPassword(others, connect)
  }
}
