/** Which columns of a database are masked, and how: what a request names, and the columns that refer to those. */
import { errors } from '@portico/sdk';

import type { ForeignKey, Kind, Session, TableName, TableStructure } from '../kinds/kind.ts';
import { type Mask, maskFor, type MaskRule, type Shape } from './masking.ts';
import { commonShape, shapeOf } from './shapes.ts';

/** A column that a request wants masked. */
export interface WantedMask {
    readonly schema?: string | undefined;
    readonly table: string;
    readonly column: string;
    readonly rule: MaskRule;
    readonly value?: string | undefined;
}

/** The masks of one table, by column; `shuffle` exchanges values between rows. */
export type TableMasks = ReadonlyMap<string, Mask | 'shuffle'>;
/** The masks of a database, by {@link tableKey}. */
export type MaskPlan = ReadonlyMap<string, TableMasks>;

/** A column of a table. */
interface Place {
    readonly name: TableName;
    readonly column: string;
}

/** Columns that hold the same values because they refer to each other, and how they are masked. */
interface Group {
    readonly rule: MaskRule;
    readonly value: string | undefined;
    /** Where the request names it, for messages. */
    readonly path: string;
    readonly places: Place[];
}

/** Names a table within a database. */
export const tableKey = (schema: string, table: string): string => `${schema}\0${table}`;
const placeKey = ({ name, column }: Place): string => `${tableKey(name.schema, name.table)}\0${column}`;

/** @throws VALIDATION_FAILED 40001 where a column is not there or a rule cannot mask it */
export class MaskPlanner {
    readonly #kind: Kind;
    readonly #session: Session;
    readonly #key: Buffer;
    readonly #structures = new Map<string, TableStructure>();
    readonly #plan = new Map<string, Map<string, Mask | 'shuffle'>>();

    constructor(kind: Kind, session: Session, key: Buffer) {
        this.#kind = kind;
        this.#session = session;
        this.#key = key;
    }

    /** The masks of all tables that hold rows of those that are named. */
    async plan(
        database: string,
        masks: readonly WantedMask[],
        foreignKeys: readonly ForeignKey[]
    ): Promise<MaskPlan> {
        const taken = new Map<string, Group>();
        for (const [index, { schema, table, column, rule, value }] of masks.entries()) {
            const name = { database, schema: schema ?? this.#kind.structure.defaultSchema(database), table };
            const group = { rule, value, path: `mask.${index}`, places: [] };
            this.#take(taken, group, { name, column }, foreignKeys);
        }
        for (const group of new Set(taken.values())) {
            await this.#mask(group);
        }
        return this.#plan;
    }

    /** Puts a column, and those that it refers to or that refer to it, into a group. */
    #take(taken: Map<string, Group>, group: Group, place: Place, foreignKeys: readonly ForeignKey[]): void {
        const known = taken.get(placeKey(place));
        if (known !== undefined) {
            if (known.rule !== group.rule || known.value !== group.value) {
                refuse(
                    group.path,
                    `${place.column} of ${place.name.table} already has the rule ${known.rule}`
                );
            }
            return;
        }
        taken.set(placeKey(place), group);
        group.places.push(place);
        for (const key of foreignKeys) {
            for (const [other, isReferenced] of partners(key, place)) {
                if (group.rule === 'null' && !isReferenced) {
                    continue; // A column that refers to nothing breaks no reference.
                }
                if (['null', 'fixed', 'shuffle'].includes(group.rule)) {
                    refuse(
                        group.path,
                        `The rule ${group.rule} would break the references of ${place.column}`
                    );
                }
                this.#take(taken, group, other, foreignKeys);
            }
        }
    }

    async #mask({ rule, value, path, places }: Group): Promise<void> {
        let shape: Shape | null = null;
        let isUnique = false;
        for (const { name, column } of places) {
            const found = await this.#structure(name);
            const info = found.columns.find((each) => each.name === column);
            if (info === undefined) {
                refuse(path, `There is no column ${column} in ${name.table}`);
                return;
            }
            if (rule === 'null' && !info.nullable) {
                refuse(path, `${column} of ${name.table} may not be empty`);
            }
            const own = shapeOf(this.#kind.name, info.type);
            const common: Shape | null = shape === null ? own : commonShape(shape, own);
            if (common === null) {
                refuse(path, `${column} of ${name.table} has another type than the column that it refers to`);
            }
            shape = common;
            isUnique ||= isIn(found.indexes, column);
        }
        const mask =
            rule === 'shuffle'
                ? { mask: rule }
                : maskFor(rule, { shape: shape ?? { family: 'other' }, isUnique, value, key: this.#key });
        if ('reason' in mask) {
            refuse(path, mask.reason);
            return;
        }
        for (const { name, column } of places) {
            await this.#set(name, column, mask.mask);
        }
    }

    async #set(name: TableName, column: string, mask: Mask | 'shuffle'): Promise<void> {
        for (const { schema, table } of await this.#kind.structure.parts(this.#session, name)) {
            const key = tableKey(schema, table);
            const masks = this.#plan.get(key) ?? new Map<string, Mask | 'shuffle'>();
            this.#plan.set(key, masks.set(column, mask));
        }
    }

    async #structure(name: TableName): Promise<TableStructure> {
        const key = tableKey(name.schema, name.table);
        const found = this.#structures.get(key) ?? (await this.#kind.structure.table(this.#session, name));
        this.#structures.set(key, found);
        return found;
    }
}

/** The columns on the other side of a foreign key, each with whether it refers to this one. */
function partners(key: ForeignKey, { name, column }: Place): readonly (readonly [Place, boolean])[] {
    const isSame = (one: TableName): boolean => one.schema === name.schema && one.table === name.table;
    const found: (readonly [Place, boolean])[] = [];
    for (const [index, own] of key.columns.entries()) {
        const target = key.targetColumns[index] ?? '';
        if (isSame(key.table) && own === column) {
            found.push([{ name: key.target, column: target }, false]);
        }
        if (isSame(key.target) && target === column) {
            found.push([{ name: key.table, column: own }, true]);
        }
    }
    return found;
}

/** Whether a unique index has the column, also within an expression. */
function isIn(indexes: TableStructure['indexes'], column: string): boolean {
    return indexes.some(
        ({ unique, columns }) =>
            unique &&
            columns.some(
                (each) => each.replaceAll('"', '') === column || (/[(:]/.test(each) && each.includes(column))
            )
    );
}

function refuse(path: string, message: string): never {
    throw errors.invalid([{ path, message }]);
}
