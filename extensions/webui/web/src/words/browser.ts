import { t } from './t.ts';

const browsers = [
    ['Edge', /Edg\/(\d+)/],
    ['Firefox', /Firefox\/(\d+)/],
    ['Chrome', /Chrome\/(\d+)/],
    ['Safari', /Version\/(\d+).*Safari/],
    ['curl', /^curl\/(\d+)/]
] as const;
const systems = [
    ['Android', /Android/],
    ['iOS', /iPhone|iPad/],
    ['Windows', /Windows/],
    ['macOS', /Mac OS/],
    ['Linux', /Linux/]
] as const;

/** A browser and its system from the header `User-Agent`: `Firefox 153 on Linux`. Others stay as they are. */
export function browserOf(agent: string | null): string {
    const browser = browsers.find(([, pattern]) => pattern.test(agent ?? ''));
    if (agent === null || browser === undefined) {
        return agent ?? '–';
    }
    const name = `${browser[0]} ${browser[1].exec(agent)?.[1] ?? ''}`;
    const system = systems.find(([, pattern]) => pattern.test(agent))?.[0];
    return system === undefined ? name : t('{browser} on {system}', { browser: name, system });
}
