/** The statements that put the content of one database in the place of another's, and those that take it back. */
import type { AccountName } from '../../kinds/kind.ts';
import { quote, quoteAccount } from '../names.ts';
import type { Content, Definition } from './definitions.ts';

/**
 * The databases of a replacement: `other` has the new content, and `aside` takes the old one. The plan lies in `aside`, where only the account of the
 * panel may write. Its table has another name from the moment on in which the tables have changed places.
 */
export interface Places {
    readonly name: string;
    readonly other: string;
    readonly aside: string;
    readonly planned: string;
    readonly done: string;
}

/** The statements that replace one database by another, in the order in which they run. */
export interface Plan {
    /** Takes away what keeps tables from being moved. */
    readonly leave: readonly string[];
    /** Moves the tables, in one statement. */
    readonly move: readonly [string];
    /** Makes what the new content has beside them. */
    readonly make: readonly string[];
    /** Takes away again what keeps tables from being moved back. */
    readonly back: readonly string[];
    /** Moves them back, in one statement. */
    readonly return: readonly [string];
    /** Makes what the old content had, once its tables are back. */
    readonly undo: readonly string[];
}

type Move = readonly [from: string, to: string];

const quoted = '(?:`(?:[^`]|``)*`|"(?:[^"]|"")*")';
const head = new RegExp(`^create (algorithm=\\w+ )?definer=${quoted}@${quoted} `, 'i');

/** The databases by the name of the one with the new content. */
export function placesOf(name: string, other: string): Places {
    const aside = `${other}_old`;
    return { name, other, aside, planned: `${other}_plan`, done: `${other}_done` };
}

/** The plan of a replacement. @param definer - of what the new content has beside its tables */
export function planOf(places: Places, old: Content, fresh: Content, definer: AccountName): Plan {
    const { name, aside, planned, done } = places;
    const inside = (table: string): string => `${quote(name)}.${quote(table)}`;
    const views = (content: Content): ReadonlySet<string> => new Set(namesOf(content, 'view'));
    const [oldViews, freshViews] = [views(old), views(fresh)];
    // A view that stays is changed in one step. One that goes leaves together with the tables.
    const leaving = [...old.brokenViews, ...[...oldViews].filter((view) => !freshViews.has(view))];
    const hidden = leaving.map((view, index): Move => [inside(view), inside(`${places.other}_${index}`)]);
    const moves: readonly Move[] = [
        ...hidden,
        ...old.tables.map((table): Move => [inside(table), `${quote(aside)}.${quote(table)}`]),
        ...fresh.tables.map((table): Move => [`${quote(places.other)}.${quote(table)}`, inside(table)]),
        [`${quote(aside)}.${quote(planned)}`, `${quote(aside)}.${quote(done)}`]
    ];
    const comingViews = [...freshViews].filter((view) => !oldViews.has(view));
    const triggers = (content: Content): readonly string[] =>
        namesOf(content, 'trigger').map((trigger) => `drop trigger if exists ${inside(trigger)}`);
    return {
        // Made again from the first on, triggers of a table come behind those that are still there.
        leave: triggers(old).toReversed(),
        move: [rename(moves)],
        make: [
            ...fresh.definitions.flatMap((each) => make(name, each, definer)),
            ...drops(name, old, fresh),
            ...hidden.map(([, to]) => `drop view if exists ${to}`)
        ],
        back: [...triggers(fresh), ...comingViews.map((view) => `drop view if exists ${inside(view)}`)],
        return: [rename(moves.map(([from, to]): Move => [to, from]).toReversed())],
        undo: [...drops(name, fresh, old), ...old.definitions.flatMap((each) => make(name, each, null))]
    };
}

function namesOf({ definitions }: Content, type: Definition['type']): readonly string[] {
    return definitions.filter((each) => each.type === type).map((each) => each.name);
}

function rename(moves: readonly Move[]): string {
    return `rename table ${moves.map(([from, to]) => `${from} to ${to}`).join(', ')}`;
}

/** Makes something in the database, or changes it to this. @param definer - null: the one that it has */
function make(
    database: string,
    { type, name, text, settings }: Definition,
    definer: AccountName | null
): readonly string[] {
    const isTrigger = type === 'trigger';
    const sql = text.replace(head, (found, algorithm: string | undefined) => {
        const owned =
            definer === null
                ? found.slice('create '.length)
                : `${algorithm ?? ''}definer=${quoteAccount(definer)} `;
        return `create ${isTrigger ? '' : 'or replace '}${owned}`;
    });
    return [
        settings,
        ...(isTrigger ? [`drop trigger if exists ${quote(database)}.${quote(name)}`] : []),
        sql
    ];
}

/** Drops routines and events that only the content has that goes. */
function drops(database: string, going: Content, staying: Content): readonly string[] {
    const key = ({ type, name }: Definition): string => `${type} ${name}`;
    const kept = new Set(staying.definitions.map(key));
    return going.definitions
        .filter((each) => each.type !== 'trigger' && each.type !== 'view' && !kept.has(key(each)))
        .map(({ type, name }) => `drop ${type} if exists ${quote(database)}.${quote(name)}`);
}
