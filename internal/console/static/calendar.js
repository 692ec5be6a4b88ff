// <calendar-bars> lets people drag the bars of drafts.
