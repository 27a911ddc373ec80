/**
 * What a schema or a route says to the pages beyond its type: one object with a closed vocabulary, `x-ui` in the OpenAPI document. A
 * word that is not in it is refused when the route is mounted, so that a misspelled hint is not ignored in silence.
 */
import { isFields } from '../boundary/plain.ts';

/** How a value is entered, where its type alone does not say it. */
export type Widget = 'lines' | 'cron' | 'path' | 'host' | 'account' | 'hidden';

/** The meaning of a state's colour. */
export type Tone = 'good' | 'busy' | 'warning' | 'bad' | 'neutral';

/** What a property says to the pages: `.meta({ ui: { … } })`. */
export interface PropertyUi {
    readonly widget?: Widget;
    /** Heading of the section of a form that it stands in. */
    readonly group?: string;
    /** It stands in the folded part of the form. */
    readonly advanced?: boolean;
    /** Place among the columns of a table, 1 first; false: never a column. */
    readonly column?: number | false;
    /** Colours of the states that the value names. */
    readonly tones?: Readonly<Record<string, Tone>>;
    /**
     * The value is the id of an item of this list: the `operationId` of its route, such as `hosts.list`. With the widget `cron` it is the
     * POST that takes `schedule`, `timezone` and `count`, and answers with what that is in words (`text`) and its next `times`.
     */
    readonly ref?: string;
}

/** What a route is on a page, where its method and path alone do not say it. */
export type RouteRole = 'list' | 'card' | 'chart' | 'log' | 'action' | 'hidden';

/** A way from an answer to another operation, as an OpenAPI link. */
export interface RouteLink {
    /** Such as `hosts.get`; of a plugin's own route `<plugin>.<id>`. A link to an operation that is not mounted is left out. */
    readonly operationId: string;
    /** By the name of a parameter of that operation, in its path or query: the field of the answer, or of each row of a list, that it takes. */
    readonly parameters: Readonly<Record<string, string>>;
}

/**
 * A state that ends by itself at a time, unless a user keeps it: the page counts down, asks, and calls one of two operations. For an
 * object that is read alone.
 */
export interface RouteDeadline {
    /** Field of the answer that holds the time, with dots between names: `trial.until`. Without a value there is nothing to keep. */
    readonly until: string;
    /** What the user is asked: `Keep these rules?` */
    readonly question: string;
    /** The operation that keeps the state; of a plugin's own route `<plugin>.<id>`. */
    readonly keep: string;
    /** The operation that ends it at once. */
    readonly undo: string;
    /** By the name of a field of their bodies: the field of the answer that it takes. */
    readonly body?: Readonly<Record<string, string>>;
}

/** What a route says to the pages: `ui: { … }` in its declaration. */
export interface RouteUi {
    /** A short noun, or a verb for an action, for tabs and buttons. */
    readonly title?: string;
    readonly role?: RouteRole;
    /** The first of its kind: the list that is shown at once, the button that stands out. */
    readonly primary?: boolean;
    /** The question that is asked before the route is called. */
    readonly confirm?: string;
    /** Name of the field of the answer that names a row. */
    readonly label?: string;
    /** What an empty list shows. */
    readonly empty?: string;
    /** Place among the tabs or buttons, 1 first. */
    readonly order?: number;
    /** Ways to other operations by name, beside those between a list, its items and what lies below them, which the paths say. */
    readonly links?: Readonly<Record<string, RouteLink>>;
    readonly deadline?: RouteDeadline;
}

/** What a value of the vocabulary must be; the text says it in an error. */
type Check = readonly [isRight: (value: unknown) => boolean, said: string];

const text: Check = [
    (value) => typeof value === 'string' && value.length > 0 && value.length <= 200,
    'a text of 1 to 200 characters'
];
const flag: Check = [(value) => typeof value === 'boolean', 'true or false'];
const place: Check = [
    (value) => Number.isInteger(value) && (value as number) >= 1,
    'a whole number from 1 on'
];
const oneOf = (...words: readonly string[]): Check => [
    (value) => words.includes(value as string),
    `one of ${words.join(', ')}`
];
const tone = oneOf('good', 'busy', 'warning', 'bad', 'neutral');

const property: Readonly<Record<keyof PropertyUi, Check>> = {
    widget: oneOf('lines', 'cron', 'path', 'host', 'account', 'hidden'),
    group: text,
    advanced: flag,
    column: [(value) => value === false || place[0](value), `false, or ${place[1]}`],
    tones: [
        (value) => isFields(value) && Object.values(value).every((each) => tone[0](each)),
        `an object whose values are ${tone[1]}`
    ],
    ref: text
};
const route: Readonly<Record<keyof RouteUi, Check>> = {
    title: text,
    role: oneOf('list', 'card', 'chart', 'log', 'action', 'hidden'),
    primary: flag,
    confirm: text,
    label: text,
    empty: text,
    order: place,
    links: [
        (value) => isFields(value) && Object.entries(value).every(([name, link]) => isLink(name, link)),
        'an object of { operationId, parameters }, with names of letters, digits, dots, dashes and underscores'
    ],
    deadline: [
        isDeadline,
        'an object of the texts until, question, keep and undo, and body, whose values are texts'
    ]
};

/** What is wrong with the `ui` of a property, in words; null when nothing is. */
export const faultOfPropertyUi = (value: unknown): string | null => faultOf(value, property);

/** What is wrong with the `ui` of a route, in words; null when nothing is. */
export const faultOfRouteUi = (value: unknown): string | null => faultOf(value, route);

function faultOf(value: unknown, vocabulary: Readonly<Record<string, Check>>): string | null {
    if (!isFields(value)) {
        return 'ui is an object';
    }
    for (const [key, given] of Object.entries(value)) {
        const check = Object.hasOwn(vocabulary, key) ? vocabulary[key] : undefined;
        if (check === undefined) {
            return `ui has no ${key}: it knows ${Object.keys(vocabulary).join(', ')}`;
        }
        if (!check[0](given)) {
            return `ui.${key} must be ${check[1]}`;
        }
    }
    return null;
}

function isLink(name: string, link: unknown): boolean {
    return (
        /^[A-Za-z0-9._-]{1,64}$/.test(name) &&
        isFields(link) &&
        Object.keys(link).every((key) => key === 'operationId' || key === 'parameters') &&
        text[0](link['operationId']) &&
        isFields(link['parameters']) &&
        Object.values(link['parameters']).every((field) => text[0](field))
    );
}

function isDeadline(value: unknown): boolean {
    if (!isFields(value)) {
        return false;
    }
    const { until, question, keep, undo, body = {}, ...others } = value;
    return (
        Object.keys(others).length === 0 &&
        [until, question, keep, undo].every((each) => text[0](each)) &&
        isFields(body) &&
        Object.values(body).every((each) => text[0](each))
    );
}
