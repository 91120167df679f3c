// Formats times: an age for people, and the exact UTC time next to it.
import { useEffect, useState } from 'preact/hooks'

const steps: [seconds: number, unit: string][] = [
  [86_400 * 365, 'year'],
  [86_400 * 30, 'month'],
  [86_400, 'day'],
  [3_600, 'hour'],
  [60, 'minute'],
]

/** Returns the distance between two times, such as `3 minutes`. */
export function distance(from: number, to: number): string {
  const seconds = Math.floor(Math.abs(to - from) / 1000)
  for (const [size, unit] of steps) {
    const count = Math.floor(seconds / size)
    if (count >= 1) return `${count} ${unit}${count === 1 ? '' : 's'}`
  }
  return `${seconds} second${seconds === 1 ? '' : 's'}`
}

/** Returns the age of a time, such as `3 minutes ago`, or `in 3 minutes`. */
export function age(at: string, now: number): string {
  const time = Date.parse(at)
  const seconds = (now - time) / 1000
  if (Math.abs(seconds) < 5) return 'just now'
  return seconds >= 0 ? `${distance(time, now)} ago` : `in ${distance(now, time)}`
}

/** Returns a time to the second in UTC, such as `2026-11-27 18:30:09 UTC`. */
export function utc(at: string): string {
  return `${at.slice(0, 10)} ${at.slice(11, 19)} UTC`
}

const tickMilliseconds = 5_000

/** Returns the current time, and renders again every few seconds. */
export function useNow(): number {
  const [now, setNow] = useState(Date.now)
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), tickMilliseconds)
    return () => clearInterval(timer)
  }, [])
  return now
}

/** Returns the month of a time, YYYY-MM, UTC. */
export function monthOf(at: Date): string {
  return at.toISOString().slice(0, 7)
}

/** Returns the last months up to the current one, the newest first. */
export function lastMonths(count: number, now: Date): string[] {
  return Array.from({ length: count }, (_, back) =>
    monthOf(new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - back, 1))),
  )
}
