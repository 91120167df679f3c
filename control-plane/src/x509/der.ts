// Encodes values of ASN.1 in DER (ITU-T X.690), as far as certificates need them. Pure.

/** Universal tags. Sequences and sets are constructed, which is the bit 0x20. */
const tags = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  objectIdentifier: 0x06,
  utf8String: 0x0c,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
  set: 0x31,
} as const
const contextSpecific = 0x80
const constructed = 0x20

export function sequence(...parts: readonly Buffer[]): Buffer {
  return encode(tags.sequence, ...parts)
}

/** Encodes a set of one element. With several elements, DER would require an order. */
export function setOfOne(element: Buffer): Buffer {
  return encode(tags.set, element)
}

/** Encodes a whole number that is not negative, of which `bytes` are the digits to base 256. */
export function unsignedInteger(bytes: Uint8Array): Buffer {
  const first = bytes.findIndex((byte) => byte !== 0)
  const digits = first === -1 ? Buffer.of(0) : Buffer.from(bytes.subarray(first))
  // The highest bit is the sign.
  return encode(tags.integer, ...((digits[0] ?? 0) >= 0x80 ? [Buffer.of(0), digits] : [digits]))
}

export function boolean(value: boolean): Buffer {
  return encode(tags.boolean, Buffer.of(value ? 0xff : 0))
}

/** Encodes an object identifier in dotted form, such as `2.5.4.3`. */
export function objectIdentifier(dotted: string): Buffer {
  const [first = 0, second = 0, ...others] = dotted.split('.').map(Number)
  return encode(tags.objectIdentifier, Buffer.from([40 * first + second, ...others].flatMap(base128)))
}

/** Encodes bits. @param unusedBits how many of the lowest bits of the last byte do not belong to the value */
export function bitString(bytes: Uint8Array, unusedBits = 0): Buffer {
  return encode(tags.bitString, Buffer.of(unusedBits), bytes)
}

export function octetString(bytes: Uint8Array): Buffer {
  return encode(tags.octetString, bytes)
}

export function utf8String(text: string): Buffer {
  return encode(tags.utf8String, Buffer.from(text))
}

/** Encodes a time in seconds, in the form that certificates need: two digits of the year until 2049 (RFC 5280, 4.1.2.5). */
export function time(date: Date): Buffer {
  const digits = `${date.toISOString().slice(0, 19).replaceAll(/[-T:]/g, '')}Z`
  const isShort = date.getUTCFullYear() >= 1950 && date.getUTCFullYear() <= 2049
  return isShort
    ? encode(tags.utcTime, Buffer.from(digits.slice(2)))
    : encode(tags.generalizedTime, Buffer.from(digits))
}

/** Encodes an explicit tag, such as `[3]`, around a value. */
export function explicit(number: number, value: Buffer): Buffer {
  return encode(contextSpecific | constructed | number, value)
}

/** Encodes an implicit tag, such as `[2]`, in place of the tag of a primitive value. */
export function implicit(number: number, bytes: Uint8Array): Buffer {
  return encode(contextSpecific | number, bytes)
}

function encode(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts)
  return Buffer.concat([Buffer.from([tag, ...lengthOf(content)]), content])
}

function lengthOf({ length }: Buffer): number[] {
  if (length < 0x80) return [length]
  const digits = [length >>> 24, (length >>> 16) & 0xff, (length >>> 8) & 0xff, length & 0xff]
  const used = digits.slice(digits.findIndex((digit) => digit !== 0))
  return [0x80 | used.length, ...used]
}

function base128(number: number): number[] {
  const digits = [number % 128]
  for (let rest = Math.floor(number / 128); rest > 0; rest = Math.floor(rest / 128)) digits.unshift((rest % 128) | 0x80)
  return digits
}
