/** A sign for each type of entry. The name beside it says what it is, so readers leave it out. */
import type { Entry } from '../panel.ts';

const shapes: Readonly<Record<Entry['type'], string>> = {
    folder: 'M2 4h5l2 2h9v10H2z',
    file: 'M5 2h7l4 4v12H5zM12 2v4h4',
    link: 'M8 12l4-4M9 6l2-2a3 3 0 0 1 5 5l-2 2M11 14l-2 2a3 3 0 0 1-5-5l2-2',
    other: 'M5 5h10v10H5z'
};

/** Shows the sign of an entry's type, which screen readers leave out. */
export const Sign = ({ type }: { readonly type: Entry['type'] }) => (
    <svg class={`sign ${type}`} viewBox="0 0 20 20" aria-hidden="true">
        <path d={shapes[type]} />
    </svg>
);
