/** Sensors of temperature and fans, as the kernel's drivers give them (`/sys/class/hwmon`, Documentation/hwmon/sysfs-interface.rst). */
import type { Machine } from '../../machine.ts';

/** What a sensor says now. */
export interface Sensor {
    /** Chip and sensor: `coretemp/Package id 0`. Where two chips share a name, with their device: `nvme@nvme1/Composite`. */
    readonly name: string;
    readonly kind: 'temperature' | 'fan';
    /** Degrees Celsius, or turns a minute; null where it does not answer. */
    readonly value: number | null;
    /** From here on it is too warm, as the chip says; null where it does not say. */
    readonly warnAt: number | null;
    /** From here on the hardware is in danger. */
    readonly criticalAt: number | null;
    readonly state: 'ok' | 'warning' | 'critical' | 'unknown';
}

interface Found extends Pick<Sensor, 'name' | 'kind' | 'warnAt' | 'criticalAt'> {
    readonly path: string;
}
interface Chip {
    readonly sensors: readonly Found[];
    /** The last values of a chip that answers slowly. */
    values: readonly (number | null)[];
    readAt: number | null;
    isSlow: boolean;
}

const root = '/sys/class/hwmon';
/** Milliseconds between two searches for sensors. */
const searchMs = 60_000;
/** A chip that took longer to answer holds everything up; it is read once a minute. */
const slowMs = 5;
const slowEveryMs = 60_000;
const mostSensors = 200;
/** Limits beyond it are what chips say that have none: 0, or all bits set. */
const highestLimit = 200;

/** Finds sensors and reads them. */
export class Sensors {
    readonly #machine: Machine;
    #chips: Chip[] = [];
    #searchedAt: number | null = null;

    constructor(machine: Machine) {
        this.#machine = machine;
    }

    /** Reads all sensors. */
    read(): Sensor[] {
        const now = this.#machine.monotonic();
        if (this.#searchedAt === null || now - this.#searchedAt >= searchMs) {
            this.#searchedAt = now;
            this.#chips = this.#search();
        }
        return this.#chips.flatMap((chip) => {
            this.#refresh(chip);
            return chip.sensors.map(({ name, kind, warnAt, criticalAt }, index): Sensor => {
                const value = chip.values[index] ?? null;
                return { name, kind, value, warnAt, criticalAt, state: judge(value, warnAt, criticalAt) };
            });
        });
    }

    #refresh(chip: Chip): void {
        const began = this.#machine.monotonic();
        if (chip.isSlow && chip.readAt !== null && began - chip.readAt < slowEveryMs) {
            return;
        }
        chip.values = chip.sensors.map(({ path, kind }) => {
            const raw = this.#number(path);
            return raw === null ? null : kind === 'temperature' ? raw / 1000 : raw;
        });
        chip.readAt = began;
        chip.isSlow = this.#machine.monotonic() - began > slowMs;
    }

    #search(): Chip[] {
        const folders = this.#machine
            .list(root)
            .filter((name) => /^hwmon\d+$/.test(name))
            .map((name) => {
                const path = `${root}/${name}`;
                return { path, chip: this.#machine.read(`${path}/name`)?.trim() || name };
            });
        const before = new Map(this.#chips.map((chip) => [chip.sensors[0]?.path, chip]));
        let left = mostSensors;
        return folders.flatMap(({ path, chip }) => {
            const isShared = folders.filter((each) => each.chip === chip).length > 1;
            const device = this.#machine.link(`${path}/device`)?.split('/').at(-1) ?? path.split('/').at(-1);
            const sensors = this.#sensorsOf(path, isShared ? `${chip}@${device}` : chip).slice(0, left);
            left -= sensors.length;
            const known = before.get(sensors[0]?.path);
            return sensors.length === 0
                ? []
                : [
                      {
                          sensors,
                          values: known?.values ?? [],
                          readAt: known?.readAt ?? null,
                          isSlow: known?.isSlow ?? false
                      }
                  ];
        });
    }

    #sensorsOf(folder: string, chip: string): Found[] {
        const taken = new Set<string>();
        return this.#machine
            .list(folder)
            .flatMap((file): [string, string][] => {
                const [, type, number] = /^(temp|fan)(\d+)_input$/.exec(file) ?? [];
                return type === undefined || number === undefined ? [] : [[type, number]];
            })
            .sort(([a, m], [b, n]) => (a === b ? Number(m) - Number(n) : a < b ? 1 : -1))
            .map(([type, number]) => {
                const base = `${folder}/${type}${number}`;
                const label = this.#machine.read(`${base}_label`)?.trim() || `${type}${number}`;
                const name = taken.has(label) ? `${label} ${number}` : label;
                taken.add(name);
                const isTemperature = type === 'temp';
                return {
                    path: `${base}_input`,
                    name: `${chip}/${name}`,
                    kind: isTemperature ? 'temperature' : 'fan',
                    warnAt: isTemperature ? this.#limit(`${base}_max`) : null,
                    criticalAt: isTemperature ? this.#limit(`${base}_crit`) : null
                };
            });
    }

    #limit(path: string): number | null {
        const raw = this.#number(path);
        const degrees = raw === null ? null : raw / 1000;
        return degrees !== null && degrees > 0 && degrees < highestLimit ? degrees : null;
    }

    #number(path: string): number | null {
        const text = this.#machine.read(path)?.trim() ?? '';
        return /^-?\d{1,12}$/.test(text) ? Number(text) : null;
    }
}

function judge(value: number | null, warnAt: number | null, criticalAt: number | null): Sensor['state'] {
    if (value === null) {
        return 'unknown';
    }
    if (criticalAt !== null && value >= criticalAt) {
        return 'critical';
    }
    return warnAt !== null && value >= warnAt ? 'warning' : 'ok';
}
