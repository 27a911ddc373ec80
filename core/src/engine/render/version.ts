import type { EngineVersion } from '../port.ts';

/**
 * Reads what `caddy version` prints: `2.6.2`, `v2.11.4 h1:…`, `v2.8.0-beta.2`, `2.6.2-5~deb12u1`.
 * @returns null when there is no version in it, as in a build from source (`(devel)`)
 */
export const parseEngineVersion = (output: string): EngineVersion | null => {
    const first = output.trim().split(/\s/, 1)[0] ?? '';
    const match = /^v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,6}))?(?![\w.])/.exec(first);
    return match === null
        ? null
        : {
              text: first.slice(0, 64).replace(/^v/, ''),
              major: Number(match[1]),
              minor: Number(match[2]),
              patch: Number(match[3] ?? 0)
          };
};

/** Whether `version` is `major.minor` or newer; an unknown version counts as the newest, since it was built from source. */
export const atLeast = (version: EngineVersion | null, major: number, minor: number): boolean =>
    version === null || version.major > major || (version.major === major && version.minor >= minor);
