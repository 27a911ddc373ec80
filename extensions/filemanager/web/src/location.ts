/** Where the page is, in its part of the panel's address: so it can be reloaded and sent to others. */
import { useEffect, useState } from 'preact/hooks';

import { panel } from './panel.ts';

const views = [
    'folder',
    'file',
    'details',
    'search',
    'favourites',
    'shares',
    'trash',
    'terminals',
    'terminal'
] as const;
/** One of the views of the page. */
export type View = (typeof views)[number];

/** A place in the file manager. */
export interface Place {
    readonly view: View;
    /** Empty: the first one. */
    readonly root: string;
    readonly path: string;
}

/** Goes to a place. */
export type Go = (place: Place) => void;

function read(location: string): Place {
    const values = new URLSearchParams(location);
    return {
        view: views.find((each) => each === values.get('view')) ?? 'folder',
        root: values.get('root') ?? '',
        path: values.get('path') ?? ''
    };
}

/** The place, and what changes it. */
export function useLocation(): readonly [Place, Go] {
    const [place, setPlace] = useState(read(panel.context.location));
    useEffect(() => panel.onContext(({ location }) => setPlace(read(location))), []);
    const go: Go = (next) => {
        setPlace(next);
        void panel.navigate(new URLSearchParams({ ...next }).toString());
    };
    return [place, go];
}
