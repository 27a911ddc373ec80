/** The parts that metric families are made of. */

/** Label names with their values. */
export type Labels = Readonly<Record<string, string>>;
/** One value of a family; without a value, it is left out. */
export type Point = readonly [labels: Labels, value: number | null | undefined];

/** All values of one name. */
export interface Family {
    readonly name: string;
    readonly type: 'counter' | 'gauge';
    readonly help: string;
    readonly points: readonly Point[];
}

/** A family of values that only grow. */
export const counter = (name: string, help: string, points: readonly Point[]): Family => ({
    name: `portico_${name}_total`,
    type: 'counter',
    help,
    points
});
/** A family of values that rise and fall. */
export const gauge = (name: string, help: string, points: readonly Point[]): Family => ({
    name: `portico_${name}`,
    type: 'gauge',
    help,
    points
});
/** The points of a family with one value. */
export const only = (value: number | null | undefined): readonly Point[] => [[{}, value]];
