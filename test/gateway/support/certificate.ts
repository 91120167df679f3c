// A self-signed certificate for tests (P-256, valid from 2020 to 2049), created in memory so that no private key is stored.
import { generateKeyPairSync, sign } from 'node:crypto'

const commonName = Buffer.from('0603550403', 'hex')
const ecdsaWithSha256 = der(0x30, Buffer.from('06082a8648ce3d040302', 'hex'))

/** Returns the certificate and its key in PEM. */
export function selfSigned(): { cert: string; key: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const name = der(0x30, der(0x31, der(0x30, commonName, der(0x0c, Buffer.from('localhost')))))
  const validity = der(0x30, der(0x17, Buffer.from('200101000000Z')), der(0x17, Buffer.from('490101000000Z')))
  const serial = der(0x02, Buffer.from([1]))
  const body = der(
    0x30,
    serial,
    ecdsaWithSha256,
    name,
    validity,
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
  )
  const signature = der(0x03, Buffer.from([0]), sign('sha256', body, privateKey))
  const whole = der(0x30, body, ecdsaWithSha256, signature)
    .toString('base64')
    .replace(/(.{64})/g, '$1\n')
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${whole}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }),
  }
}

/** Returns a value in the DER encoding of ASN.1, of less than 64 KB. */
function der(tag: number, ...parts: Buffer[]): Buffer {
  const content = Buffer.concat(parts)
  const { length } = content
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from([tag, ...size]), content])
}
