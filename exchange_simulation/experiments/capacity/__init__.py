"""`exchange capacity`: the highest offered load that holds an objective, with its 95 % interval."""
