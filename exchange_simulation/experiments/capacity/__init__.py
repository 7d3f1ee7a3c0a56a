"""`exchange capacity`: the highest offered load that holds an objective, and how sure that is."""
